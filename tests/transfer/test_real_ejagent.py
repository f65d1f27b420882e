"""The real ejagent-core 0.6.0 reads what we write, and we read what it writes, as it does."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.transfer.breaches import ACCEPTED, OURS, REFUSED
from tests.transfer.conftest import RealEjagent
from tests.transfer.folding import Records, records_of, write
from tests.transfer.mutations import mutant
from tests.transfer.trees import tree_of

from runlane.journal.errors import JournalFormatError
from runlane.journal.projection import Projection
from runlane.journal.transcript import ABANDONED_CALL
from runlane.journal.transfer.ejagent_messages import file_message
from runlane.journal.transfer.ejagent_results import file_result
from runlane.journal.transfer.jsonl_reader import read_jsonl
from runlane.journal.transfer.names import journal_file_name, run_id_of
from runlane.journal.wire.records import ToolCompleted
from runlane.journal.wire.results import AgentRunResult, StopReason
from runlane.journal.wire.tree import BranchCreated, BranchIntent

pytestmark = pytest.mark.timeout(900)

PUBLIC = ("role", "content", "tool_calls", "tool_call_id")
OURS_ALONE = (
    "data.message",
    "data.messages",
    "$.message",
    "$.document.session.entries",
    "$.session.entries",
    "<= 9223372036854775807",
    "unfinished at the base",
    "agent_id changes",
    "is there twice",
    "more than one run",
)
"""Parts of the reasons for which we alone refuse a file."""

Json = dict[str, Any]


def put(root: Path, journals: dict[str, list[bytes]]) -> Path:
    """Write journals of session `s`, each in a folder of its own."""
    for name, lines in journals.items():
        folder = root / name
        folder.mkdir(parents=True)
        (folder / journal_file_name("s")).write_bytes(b"".join(lines))
    return root


def read(folder: Path) -> Records:
    with (folder / journal_file_name("s")).open("rb") as file:
        return records_of(read_jsonl(file, session_id="s"))


def plain(message: Json) -> Json:
    """Return what a model reads of a message."""
    return {key: message[key] for key in PUBLIC if key in message}


def shown(projection: Projection) -> Json:
    """Return a projection as the library shows its own."""
    last = projection.last_run
    return {
        "messages": [plain(file_message(message)) for message in projection.messages],
        "open": [projection.open_run.run_id] if projection.open_run else [],
        "last": last and [last.run_id, nearest(last.stop_reason)],
    }


def nearest(reason: StopReason) -> str:
    word: str = file_result(AgentRunResult(status=reason.status, stop_reason=reason))["stop_reason"]
    return word


def told(branch: Json) -> Json:
    """Return what the library shows of a branch, run ids in our form."""
    last = branch["last"]
    return {
        "messages": [plain(message) for message in branch["messages"]],
        "open": branch["open"],
        "last": last and [run_id_of(last[0]), last[1]],
    }


def refusal(lines: list[bytes]) -> str:
    """Return why we refuse a file; empty if we read it."""
    try:
        read_jsonl(lines, session_id="s")
    except JournalFormatError as error:
        return error.reason
    return ""


def texts(messages: list[Json]) -> list[Json]:
    """Return what was said, results of tools apart: of those, each reader repairs some."""
    return [plain(message) for message in messages if message.get("role") != "tool"]


def test_the_library_judges_each_file_of_the_corpus_as_we_do(
    ejagent: RealEjagent, tmp_path: Path
) -> None:
    corpus = {name: lines for name, (lines, _, _) in (REFUSED | OURS).items()} | ACCEPTED
    put(tmp_path, {str(number): lines for number, lines in enumerate(corpus.values())})
    verdicts = ejagent.ask("look", tmp_path)
    accepted = {
        name for number, name in enumerate(corpus) if verdicts[str(number)]["error"] is None
    }
    assert accepted == OURS.keys() | ACCEPTED.keys()


def test_files_damaged_at_random_are_judged_and_read_as_the_library_does(
    ejagent: RealEjagent, tmp_path: Path
) -> None:
    journals = {str(seed): mutant(Random(seed)) for seed in range(400)}
    verdicts = ejagent.ask("look", put(tmp_path, journals))
    read_by_both = 0
    for seed, lines in journals.items():
        verdict, reason = verdicts[seed], refusal(lines)
        if verdict["error"] is not None:
            assert reason, (seed, verdict["error"])
        elif reason:
            assert any(word in reason for word in OURS_ALONE), (seed, reason)
        else:
            read_by_both += 1
            records = records_of(read_jsonl(lines, session_id="s"))
            for name, branch in verdict["branches"].items():
                messages = shown(records.project_branch(name))["messages"]
                assert texts(messages) == texts(branch["messages"]), (seed, name)
    assert read_by_both > 20


def test_the_library_reads_an_export_as_we_do(ejagent: RealEjagent, tmp_path: Path) -> None:
    trees = {str(seed): tree_of(Random(seed)).records for seed in range(60)}
    put(tmp_path, {seed: write(records) for seed, records in trees.items()})
    for seed, found in ejagent.ask("look", tmp_path).items():
        assert found["error"] is None
        records = trees[seed]
        assert found["branches"].keys() == {*records.branches} | {"main"}
        for name, branch in found["branches"].items():
            assert told(branch) == shown(records.project_branch(name)), (seed, name)
        for record in records.all:
            if isinstance(record.body, BranchCreated):
                lost = record.body.intent is BranchIntent.LOST
                intent = "fork" if lost else str(record.body.intent)
                assert found["branches"][record.branch_id]["intent"] == intent


def test_the_library_branches_and_goes_on_from_an_export_and_we_read_that(
    ejagent: RealEjagent, tmp_path: Path
) -> None:
    trees = {str(seed): tree_of(Random(seed)).records for seed in range(100, 112)}
    put(tmp_path, {seed: write(records) for seed, records in trees.items()})
    for retried in ejagent.ask("work", tmp_path).values():
        assert all(task == again for task, again in retried.values())
    for seed, found in ejagent.ask("look", tmp_path).items():
        records = read(tmp_path / seed)
        assert found["branches"].keys() == {*records.branches}
        for name, branch in found["branches"].items():
            if not branch["open"]:
                assert shown(records.project_branch(name)) == told(branch), (seed, name)


def test_a_journal_of_the_library_alone_is_read_with_its_outcomes(
    ejagent: RealEjagent, tmp_path: Path
) -> None:
    (tmp_path / "one").mkdir()
    ejagent.ask("fresh", tmp_path)
    (found,) = ejagent.ask("look", tmp_path).values()
    records = read(tmp_path / "one")
    for name, branch in found["branches"].items():
        assert shown(records.project_branch(name))["messages"] == told(branch)["messages"]
    bodies = [record.body for record in records.all]
    outcomes = [body.outcome for body in bodies if isinstance(body, ToolCompleted)]
    assert outcomes == ["ok", "error"] * 3
    assert not any(
        message.content == ABANDONED_CALL for message in records.project_branch("main").messages
    )
