"""Our records in EJAgent's words."""

import json
from random import Random
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace
from tests.transfer.folding import Records, write
from tests.transfer.trees import Tree, tree_of

from runlane.journal.errors import InvalidInputError
from runlane.journal.transcript import ABANDONED_CALL
from runlane.journal.transfer.jsonl_writer import JsonlWriter
from runlane.journal.wire.messages import (
    AssistantMessage,
    ModelToolCall,
    ModelUsage,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.records import (
    CONTROL_BRANCH,
    MessageAppended,
    RunFinished,
    RunQueued,
    RunStarted,
    ToolCompleted,
    ToolOutcome,
)
from runlane.journal.wire.results import AgentRunResult, RunUsage, StopReason
from runlane.journal.wire.tree import (
    BranchCreated,
    BranchIntent,
    BranchPromoted,
    CompactionApplied,
    SummaryEntry,
)

Json = dict[str, Any]


def written(records: Records) -> list[Json]:
    return [json.loads(line) for line in write(records)]


def begin(records: Records, run_id: str, branch: str = "main") -> None:
    records.add(
        branch,
        RunStarted(
            run_id=run_id,
            attempt=1,
            agent="a",
            version="1",
            worker_id="w",
            message=UserMessage("task"),
        ),
    )


def respond(records: Records, run_id: str, message: AssistantMessage, branch: str = "main") -> None:
    records.add(branch, MessageAppended(run_id=run_id, attempt=1, turn=1, message=message))


def end(
    records: Records,
    run_id: str,
    branch: str = "main",
    *,
    reason: StopReason = StopReason.TEXT_RESPONSE,
    **parts: Any,
) -> str:
    result = AgentRunResult(status=reason.status, stop_reason=reason, **parts)
    body = RunFinished(run_id=run_id, branch_id=branch, result=result)
    return records.add(branch, body).record_id


def one_run(run_id: str = "r1") -> Records:
    records = Records()
    begin(records, run_id)
    end(records, run_id)
    return records


def test_lines_are_written_as_the_library_writes_them() -> None:
    lines = write(tree_of(Random(7)).records)
    assert len(lines) > 5
    for line in lines:
        again = json.dumps(
            json.loads(line), ensure_ascii=False, separators=(",", ":"), sort_keys=True
        )
        assert line == f"{again}\n".encode()


def test_revisions_are_line_numbers_and_record_ids_are_made_the_same_way_each_time() -> None:
    records = tree_of(Random(7)).records
    lines = written(records)
    assert [line["revision"] for line in lines] == [*range(1, len(lines) + 1)]
    ids = [line["record_id"] for line in lines]
    assert len(set(ids)) == len(ids)
    for record_id in ids:
        assert (UUID(record_id).version, UUID(record_id).hex) == (4, record_id)
    assert write(records) == write(records)
    assert {line["record_id"] for line in map(json.loads, write(records, "t"))}.isdisjoint(ids)


def test_the_first_line_is_the_empty_session_that_empty_branches_begin_at() -> None:
    records = one_run()
    body = BranchCreated(intent=BranchIntent.FORK, source_branch_id="main")
    records.add("empty", body, "")
    first, *_, created = written(records)
    assert (first["type"], first["parent_id"]) == ("checkpoint", None)
    assert first["data"]["document"]["session"]["entries"] == []
    assert created["parent_id"] == created["data"]["base_record_id"] == first["record_id"]


def test_a_session_in_which_nothing_began_is_its_first_line() -> None:
    records = Records()
    queued = RunQueued(run_id="r1", branch_id="main", intent="run", agent="a")
    records.add(CONTROL_BRANCH, queued)
    result = AgentRunResult(
        status=StopReason.EXTERNAL_ABORT.status, stop_reason=StopReason.EXTERNAL_ABORT
    )
    records.add(CONTROL_BRANCH, RunFinished(run_id="r1", branch_id="main", result=result))
    assert [line["type"] for line in written(records)] == ["checkpoint"]


def test_sequences_rise_within_each_run() -> None:
    records = one_run()
    begin(records, "r2")
    respond(records, "r2", AssistantMessage("hm"))
    end(records, "r2")
    assert [line["sequence"] for line in written(records)] == [0, 1, 2, 1, 2, 3]


@pytest.mark.parametrize("reason", StopReason)
def test_every_end_is_one_that_the_library_knows(reason: StopReason) -> None:
    records = Records()
    begin(records, "r1")
    end(records, "r1", reason=reason, error="why")
    result = written(records)[-1]["data"]["result"]
    assert result["status"] == str(reason.status)
    if result["stop_reason"] != str(reason):
        nearest = ("runtime_error", "external_abort", "token_budget_exceeded")
        assert result["stop_reason"] in nearest
        assert result["error"] == f"{reason}: why"


def test_calls_that_never_had_a_result_get_one_before_the_end() -> None:
    records = Records()
    begin(records, "r1")
    calls = (ModelToolCall("c1", "look"), ModelToolCall("c2", "look"))
    respond(records, "r1", AssistantMessage(None, tool_calls=calls))
    records.add(
        "main",
        ToolCompleted(
            run_id="r1",
            attempt=1,
            turn=1,
            index=1,
            outcome=ToolOutcome.OK,
            message=ToolMessage("c2", "look", "seen"),
        ),
    )
    end(records, "r1", reason=StopReason.EXTERNAL_ABORT)
    *_, result, abandoned, finished = written(records)
    assert result["data"]["messages"][0]["content"] == "seen"
    (message,) = abandoned["data"]["messages"]
    assert (message["tool_call_id"], message["content"]) == ("c1", ABANDONED_CALL)
    assert finished["type"] == "run_finished"


def test_only_keys_that_the_library_keeps_from_its_models_are_added_to_messages() -> None:
    for seed in range(20):
        for line in written(tree_of(Random(seed)).records):
            data = line["data"]
            messages = [*data.get("messages", ()), *filter(None, [data.get("message")])]
            for message in messages:
                public = {key for key in message if not key.startswith("_ejagent_")}
                assert public <= {"role", "content", "tool_calls", "tool_call_id", "usage"}


def test_an_output_left_out_is_put_back() -> None:
    records = Records()
    begin(records, "r1")
    respond(records, "r1", AssistantMessage("the answer"))
    end(records, "r1")
    body = records.all[-1].body
    assert isinstance(body, RunFinished)
    records.all[-1] = replace(records.all[-1], body=replace(body, output_in_parent=True))
    assert written(records)[-1]["data"]["result"]["output"] == "the answer"


def test_counts_that_contradict_each_other_are_left_unknown() -> None:
    records = Records()
    begin(records, "r1")
    usage = ModelUsage(3, 4, cache_read_tokens=9, reasoning_tokens=4)
    message = AssistantMessage("x")
    records.add(
        "main", MessageAppended(run_id="r1", attempt=1, turn=1, message=message, usage=usage)
    )
    end(records, "r1", usage=RunUsage(3, 4, cache_write_tokens=4, reported_request_count=2))
    *_, response, finished = written(records)
    counts = response["data"]["message"]["usage"]
    assert (counts["cache_read_tokens"], counts["reasoning_tokens"]) == (None, 4)
    counts = finished["data"]["result"]["usage"]
    assert (counts["cache_write_tokens"], counts["reported_request_count"]) == (None, 0)


def compacted(records: Records) -> SummaryEntry:
    summary = SummaryEntry(
        content="SUM",
        source="m",
        history_start_index=0,
        first_kept_index=1,
        summarized_message_count=1,
        tokens_before=9,
    )
    messages = (SystemMessage("Conversation summary from earlier turns:\n\nSUM"), UserMessage("x"))
    branch = records.all[-1].branch_id
    body = CompactionApplied(operation_id="op1", summary=summary, messages=messages)
    records.add(branch, body)
    return summary


def test_a_summary_is_marked_as_the_library_marks_its_own() -> None:
    records = one_run()
    compacted(records)
    data = written(records)[-1]["data"]
    system, user = data["messages"]
    assert system["_ejagent_summary"] == data["summary"]
    assert data["summary"]["content"] == "SUM"
    assert user == {"role": "user", "content": "x"}


def test_a_lost_branch_is_a_fork() -> None:
    records = one_run()
    body = BranchCreated(intent=BranchIntent.LOST, source_branch_id="main")
    records.add("lost-main", body, records.all[-1].record_id)
    data = written(records)[-1]["data"]
    assert data["intent"] == "fork"
    assert "retried_run_id" not in data


def test_a_branch_names_the_head_of_its_source_at_that_moment() -> None:
    records = one_run()
    base = records.all[-1].record_id
    begin(records, "r2")
    body = BranchCreated(intent=BranchIntent.FORK, source_branch_id="main")
    records.add("side", body, base)
    *_, ended, open_run, created = written(records)
    assert created["data"]["base_record_id"] == ended["record_id"]
    assert created["data"]["source_head_id"] == open_run["record_id"]


def promoted() -> Records:
    """Return a session whose main goes on from a branch, and a fork of a record of that branch."""
    records = one_run("r1")
    fork = BranchCreated(intent=BranchIntent.FORK, source_branch_id="main")
    records.add("side", fork, records.all[-1].record_id)
    begin(records, "r2", "side")
    base = end(records, "r2", "side", reason=StopReason.WORKER_LOST)
    compacted(records)
    main = records.heads["main"].record_id
    body = BranchPromoted(source_branch_id="side", previous_head_id=main)
    records.add("main", body, records.heads["side"].record_id)
    records.add("again", fork, base)
    return records


def test_a_promotion_is_a_checkpoint_of_the_branch_that_main_follows() -> None:
    *_, checkpoint, _ = written(promoted())
    assert (checkpoint["branch_id"], checkpoint["type"]) == ("main", "checkpoint")
    session = checkpoint["data"]["document"]["session"]
    assert [entry["message"]["content"] for entry in session["entries"]] == [
        "Conversation summary from earlier turns:\n\nSUM",
        "x",
    ]
    assert "_ejagent_summary" in session["entries"][0]["message"]
    (run,) = session["runs"]
    assert (run["run_id"], run["result"]["stop_reason"]) == ("r2", "runtime_error")


def test_a_base_that_main_only_followed_is_looked_up_on_its_own_branch() -> None:
    *_, created = written(promoted())
    assert created["branch_id"] == "again"
    assert created["data"]["source_branch_id"] == "side"


def test_a_record_whose_parent_was_not_given_is_refused() -> None:
    records = one_run()
    writer = JsonlWriter("s", "a")
    with pytest.raises(InvalidInputError, match="was not given before it"):
        writer.lines(records.all[1])


def test_a_record_of_a_branch_that_was_not_given_is_refused() -> None:
    tree = Tree(Random(1))
    begin(tree.records, "r1", "nowhere")
    with pytest.raises(InvalidInputError, match="was not given before it"):
        write(tree.records)
