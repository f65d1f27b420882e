"""What leaves as lines comes back as the same conversation."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.transfer.ejagent_files import GOLDEN, SIMAGENTPLG
from tests.transfer.folding import Records, records_of, write
from tests.transfer.trees import tree_of

from runlane.journal.projection import Projection
from runlane.journal.transfer.jsonl_reader import read_jsonl
from runlane.journal.wire.records import CONTROL_BRANCH, MessageAppended, RunFinished
from runlane.journal.wire.results import AgentRunResult, StopReason
from runlane.journal.wire.tree import BranchCreated, BranchIntent

LOST = AgentRunResult(
    status=StopReason.WORKER_LOST.status, stop_reason=StopReason.WORKER_LOST, turns=1
)


def ended(projection: Projection) -> Projection:
    """Return a projection in which no run is open any more."""
    run = projection.open_run
    if run is None:
        return projection
    end = RunFinished(run_id=run.run_id, branch_id="", result=LOST)
    return projection.after([end])


def results(records: Records) -> dict[str, AgentRunResult]:
    """Return the results of all runs that began, outputs put back."""
    found: dict[str, AgentRunResult] = {}
    for record in records.all:
        if not isinstance(record.body, RunFinished) or record.branch_id == CONTROL_BRANCH:
            continue
        result = record.body.result
        if record.body.output_in_parent:
            parent = records.path(record.parent_id)[-1].body
            assert isinstance(parent, MessageAppended)
            result = replace(result, output=parent.message.content)
        found[record.body.run_id] = result
    return found


def beginnings(records: Records) -> dict[str, tuple[object, ...]]:
    """Return how each branch began: why, and with what."""
    found: dict[str, tuple[object, ...]] = {}
    for record in records.all:
        if isinstance(record.body, BranchCreated):
            body, at = record.body, records.project(record.record_id)
            lost = body.intent is BranchIntent.LOST
            intent = BranchIntent.FORK if lost else body.intent
            found[record.branch_id] = (intent, body.retried_run_id, at.messages, at.last_run)
    return found


@given(st.randoms(use_true_random=False))
def test_messages_results_and_branches_come_back(random: Random) -> None:
    tree = tree_of(random)
    before = tree.records
    imported = read_jsonl(write(before), session_id="s")
    after = records_of(imported)

    assert {*after.branches} | {"main"} == {*before.branches} | {"main"}
    for branch in before.branches:
        expected, found = ended(before.project_branch(branch)), after.project_branch(branch)
        assert found.messages == expected.messages
        assert found.last_run == expected.last_run
        assert found.open_run is None
    assert beginnings(after) == beginnings(before)
    assert imported.report.closed_runs == len(tree.open)
    finished = results(before)
    assert {run: end for run, end in results(after).items() if run in finished} == finished


@given(st.randoms(use_true_random=False))
def test_an_import_written_again_gives_the_same_records(random: Random) -> None:
    tree = tree_of(random)
    tree.run()
    once = read_jsonl(write(tree.records), session_id="s")
    twice = read_jsonl(write(records_of(once)), session_id="s")
    assert twice.entries == once.entries


def test_golden_journals_written_again_give_the_same_records() -> None:
    for path in (GOLDEN, SIMAGENTPLG):
        with path.open("rb") as file:
            once = read_jsonl(file)
        lines = write(records_of(once), once.session_id, once.agent_id or "")
        twice = read_jsonl(lines)
        assert twice.agent_id == once.agent_id
        assert twice.entries == once.entries
