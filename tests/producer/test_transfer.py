"""A session that goes out into a file and in again is the same conversation."""

import io
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from tests.producer.hand_worker import HandWorker
from tests.producer.support import (
    add_run,
    exported,
    moved,
)
from tests.transfer.ejagent_files import GOLDEN
from tests.transfer.folding import Records, records_of, write
from tests.transfer.trees import tree_of

from runlane.journal.errors import (
    JournalFormatError,
)
from runlane.journal.partition import Partition
from runlane.journal.settings import Settings
from runlane.journal.transfer.jsonl_reader import read_jsonl
from runlane.journal.transitions.archive_claim import archive_claim
from runlane.journal.upkeep.archiver import archive_session
from runlane.journal.wire.messages import (
    AssistantMessage,
    ModelToolCall,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.records import (
    CONTROL_BRANCH,
    RunFinished,
)
from runlane.journal.wire.results import AgentRunResult, StopReason
from runlane.producer import Client, Session, importing

pytestmark = pytest.mark.usefixtures("sound")


async def conversation(client: Client, session: Session) -> dict[str, Any]:
    """Return what a session says, branch by branch."""
    found: dict[str, Any] = {}
    for info in await session.list_branches():
        lane = client.session(session.session_id, branch=info.branch_id)
        checkout = await lane.checkout()
        about = (info.intent, info.source_branch_id, info.retried_run_id)
        found[info.branch_id] = (about, checkout.messages, checkout.last_run, checkout.open_run)
    return found


async def results(session: Session) -> dict[str, AgentRunResult]:
    """Return what came of each run that began."""
    return {
        record.body.run_id: record.body.result
        async for record in session.records()
        if isinstance(record.body, RunFinished) and record.branch_id != CONTROL_BRANCH
    }


async def test_a_session_goes_out_and_in_without_change(
    client: Client, session: Session, worker: HandWorker
) -> None:
    call = ModelToolCall(id="c1", name="lookup", arguments='{"id": 7}')
    await session.run("one")
    held = await worker.begin()
    await held.say(1, "let me look", call)
    await held.use_tool(1, call)
    await held.finish("it is 42", held.message(2, "it is 42"))
    after_first = await session.head()
    assert after_first is not None
    second = await session.run("two")
    await (await worker.begin()).finish("too long", stop_reason=StopReason.MAX_STEPS)
    fork = await session.fork(name="what-if")
    await fork.run("three")
    await worker.complete("yes")
    await (await session.rollback(after_first, name="before")).run("four")
    await worker.complete("no")
    await session.prepare_retry(second.run_id, name="again")
    await (await session.run("five")).abort()

    there = await moved(client, session)
    assert await conversation(client, there) == await conversation(client, session)
    assert await results(there) == await results(session)
    assert (await there.status()).agent == "support"

    await client.session("s1", branch="what-if").promote()
    again = await moved(client, session, "again")
    assert await again.messages() == await session.messages()
    assert (await again.status()).last_run == (await session.status()).last_run


@pytest.mark.parametrize("seed", range(12))
async def test_any_tree_comes_in_and_goes_out_as_it_was(
    client: Client, worker: HandWorker, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Whatever lies in one page or another."""
    random = Random(seed)
    monkeypatch.setattr(importing, "PAGE_RECORDS", random.randint(1, 9))
    lines = write(tree_of(random).records, agent_id="support")
    expected = read_jsonl(lines)
    if not expected.entries:
        return
    session = client.session("s", agent="support")
    assert await session.import_jsonl(io.BytesIO(b"".join(lines))) == expected.report
    folded = records_of(expected)
    for branch in folded.branches:
        messages = await client.session("s", branch=branch).messages()
        assert messages == folded.project_branch(branch).messages
    assert read_jsonl(io.BytesIO(await exported(session))).entries == expected.entries


async def test_a_journal_of_ejagent_goes_in_and_out(client: Client, worker: HandWorker) -> None:
    session = client.session("golden")
    report = await session.import_jsonl(GOLDEN)
    assert (report.lines, report.branches, report.runs) == (13, 3, 2)
    assert await session.messages() == [UserMessage("imported")]
    back = await client.session("golden", branch="back").messages()
    call = ModelToolCall(id="c1", name="t", arguments="{}")
    assert back == [
        UserMessage("first"),
        AssistantMessage(tool_calls=(call,)),
        ToolMessage("c1", "t", '{"ok": 1}'),
        UserMessage("steer"),
        AssistantMessage("ok"),
    ]
    assert await client.session("golden", branch="again").messages() == []
    there = await moved(client, session)
    assert await conversation(client, there) == await conversation(client, session)
    assert await results(there) == await results(session)


async def test_an_archived_session_goes_out_whole(
    worker: HandWorker, settings: Settings, redis_url: str, tmp_path: Path
) -> None:
    records = Records()
    for number in range(100):
        add_run(records, "main", f"task {number}")
    lines = b"".join(write(records, agent_id="support"))
    with_archive = replace(settings, archive=str(tmp_path))
    partition = Partition.of(redis_url, with_archive)
    async with await Client.connect(settings=with_archive) as client:
        session = client.session("s1")
        await session.import_jsonl(io.BytesIO(lines))
        (claim,) = await archive_claim(partition, worker_id="w", count=1)
        assert await archive_session(partition, claim) == 300
        expected = read_jsonl(io.BytesIO(lines))
        assert read_jsonl(io.BytesIO(await exported(session))).entries == expected.entries
        assert len(await session.messages()) == 200
    await partition.close()


async def test_a_run_that_goes_on_is_ended_in_the_copy(
    client: Client, session: Session, worker: HandWorker
) -> None:
    await session.run("one")
    held = await worker.begin()
    await held.say(1, "so far")
    there = client.session("copy")
    report = await there.import_jsonl(io.BytesIO(await exported(session)))
    assert report.closed_runs == 1
    (result,) = (await results(there)).values()
    assert result.stop_reason is StopReason.WORKER_LOST
    assert await there.messages() == await session.messages()
    await held.finish("done")


async def test_a_session_without_a_begun_run_goes_out_empty_and_not_in(
    client: Client, session: Session, worker: HandWorker
) -> None:
    await session.run("one")
    with pytest.raises(JournalFormatError, match="nothing has happened"):
        await client.session("copy").import_jsonl(io.BytesIO(await exported(session)))


async def test_progress_is_told(session: Session, worker: HandWorker) -> None:
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))

    await session.import_jsonl(GOLDEN, progress=tell)
    assert told == [(13, 13)]
    await session.export_jsonl(io.BytesIO(), progress=tell)
    assert told[1:] == [(13, 13)]
