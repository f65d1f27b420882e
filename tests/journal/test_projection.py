"""A branch as a worker sees it: the same, wherever reading began."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.journal.builders import result_of
from tests.journal.folding import gist
from tests.journal.strategies import paths

from runlane.journal.projection import ABANDONED_CALL, Projection
from runlane.journal.record_order import RecordOrderError
from runlane.journal.wire.messages import (
    AssistantMessage,
    ModelToolCall,
    ModelUsage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.records import (
    AnyBody,
    MessageAppended,
    Record,
    RunFinished,
    RunStarted,
    ToolCompleted,
    ToolOutcome,
)
from runlane.journal.wire.results import RunUsage, StopReason
from runlane.journal.wire.tree import (
    BranchCreated,
    BranchIntent,
    BranchPromoted,
    Checkpoint,
    CompactionApplied,
    HistoryImported,
    LastRun,
    MessagesAppended,
    OpenRunState,
    SteeringApplied,
    SummaryEntry,
)


def state(projection: Projection) -> tuple[object, ...]:
    return projection.messages, projection.last_run, projection.open_run


@given(paths(), st.data())
def test_resuming_from_any_cut_equals_reading_from_the_start(
    path: list[Record], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(path)))
    resumed = Projection(path[:cut])
    for record in path[cut:]:
        resumed.add(record.body, record.parent_id)
    assert state(resumed) == state(Projection(path))


@given(paths(), st.data())
def test_a_checkpoint_wherever_there_can_be_one_stands_for_all_before_it(
    path: list[Record], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(path)))
    before = Projection(path[:cut])
    checkpoint = before.checkpoint()
    if checkpoint is None:
        assert before.open_run is not None
        assert before.open_run.in_turn
        return
    resumed = Projection()
    resumed.add(checkpoint)
    for record in path[cut:]:
        resumed.add(record.body, record.parent_id)
    assert gist(resumed) == gist(Projection(path))


@given(paths(), st.data())
def test_a_checkpoint_in_the_middle_of_a_path_changes_nothing(
    path: list[Record], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(path)))
    projection = Projection(path[:cut])
    run = projection.open_run
    if (checkpoint := projection.checkpoint()) is None:
        return
    projection.add(checkpoint)
    assert projection.open_run is run  # whoever carries the run on may go on holding it
    for record in path[cut:]:
        projection.add(record.body, record.parent_id)
    assert state(projection) == state(Projection(path))


@given(paths(), st.data())
def test_a_look_ahead_is_what_comes_and_leaves_the_present_as_it_is(
    path: list[Record], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(path)))
    present = Projection(path[:cut])
    ahead = present.after([record.body for record in path[cut:]])
    assert (ahead.messages, ahead.last_run) == state(Projection(path))[:2]
    assert state(present) == state(Projection(path[:cut]))


@given(paths())
def test_an_ended_run_leaves_no_tool_call_without_a_result(path: list[Record]) -> None:
    projection = Projection(path)
    asked, answered = Counter[str](), Counter[str]()
    for message in projection.messages:
        if isinstance(message, AssistantMessage):
            asked.update(call.id for call in message.tool_calls)
        elif isinstance(message, ToolMessage):
            answered[message.tool_call_id] += 1
    if (run := projection.open_run) and run.response:
        calls = run.response.message.tool_calls
        answered.update(calls[index].id for index in run.calls_without_result())
    assert asked == answered


@given(paths())
def test_the_last_run_is_the_one_that_ended_last(path: list[Record]) -> None:
    ends = [record.body for record in path if isinstance(record.body, RunFinished)]
    last = LastRun(ends[-1].run_id, ends[-1].result.stop_reason) if ends else None
    assert Projection(path).last_run == last


@given(paths())
def test_a_run_that_is_open_knows_the_record_before_it(path: list[Record]) -> None:
    run = Projection(path).open_run
    begun = [record for record in path if record.kind in ("run_started", "run_continued")]
    assert run is None or run.base_id == begun[-1].parent_id


@given(paths().filter(bool), st.data())
def test_a_record_that_comes_twice_is_noticed_if_it_begins_a_run(
    path: list[Record], data: st.DataObject
) -> None:
    edges = [n for n, record in enumerate(path) if record.kind in ("run_started", "run_continued")]
    index = data.draw(st.sampled_from(edges))
    with pytest.raises(RecordOrderError):
        Projection([*path[: index + 1], *path[index:]])


PLACE: dict[str, Any] = {"run_id": "r", "attempt": 1}
CALLS = tuple(ModelToolCall(id=f"c{index}", name="tool") for index in range(2))
STARTED = RunStarted(**PLACE, agent="a", version="1", worker_id="w", message=UserMessage("hi"))
ASKED = MessageAppended(
    **PLACE,
    turn=1,
    message=AssistantMessage("let me see", tool_calls=CALLS),
    usage=ModelUsage(input_tokens=5, output_tokens=7),
)
DONE = ToolCompleted(
    **PLACE,
    turn=1,
    index=1,
    outcome=ToolOutcome.OK,
    message=ToolMessage(tool_call_id="c1", tool_name="tool", content="done"),
)
FINISHED = RunFinished(run_id="r", branch_id="main", result=result_of())


def fold(*bodies: AnyBody) -> Projection:
    projection = Projection()
    for body in bodies:
        projection.add(body, "7-1.abc")
    return projection


def test_an_open_run_shows_what_is_left_to_do() -> None:
    run = fold(STARTED, ASKED, DONE).open_run
    assert run is not None
    assert (run.run_id, run.turn, run.calls_without_result()) == ("r", 1, [0])
    assert (run.usage.total_tokens, run.usage.request_count) == (12, 1)
    assert run.in_turn


def test_a_call_that_a_run_left_open_is_answered_when_it_ends() -> None:
    projection = fold(STARTED, ASKED, DONE, FINISHED)
    assert projection.open_run is None
    *_, last = projection.messages
    assert last == ToolMessage(
        tool_call_id="c0", tool_name="tool", content=ABANDONED_CALL, is_error=True
    )


def test_there_is_no_checkpoint_in_the_middle_of_a_turn() -> None:
    other = replace(DONE, index=0, message=replace(DONE.message, tool_call_id="c0"))
    answer = replace(ASKED, turn=2, message=AssistantMessage("that is it"))
    assert fold(STARTED).checkpoint() is not None
    assert fold(STARTED, ASKED).checkpoint() is None
    assert fold(STARTED, ASKED, DONE).checkpoint() is None
    assert fold(STARTED, ASKED, DONE, other, answer).checkpoint() is None
    checkpoint = fold(STARTED, ASKED, DONE, other).checkpoint()
    assert checkpoint is not None
    usage = RunUsage(5, 7, request_count=1, reported_request_count=1)
    assert checkpoint.open_run == OpenRunState(run_id="r", base_id="7-1.abc", turn=1, usage=usage)


def test_a_run_of_another_id_does_not_fit_an_open_one() -> None:
    for stranger in (STARTED, ASKED, DONE, FINISHED):
        with pytest.raises(RecordOrderError):
            fold(STARTED, replace(stranger, run_id="other"))


def test_a_compaction_puts_its_messages_in_the_place_of_all_before() -> None:
    summary = SummaryEntry(
        content="they said hi",
        source="model",
        history_start_index=0,
        first_kept_index=1,
        summarized_message_count=1,
        tokens_before=9,
    )
    kept = (UserMessage("they said hi"),)
    compaction = CompactionApplied(operation_id="o", summary=summary, messages=kept)
    projection = fold(STARTED, compaction)
    assert projection.messages == list(kept)
    assert projection.open_run is not None


def test_an_import_stands_for_the_whole_history() -> None:
    last = LastRun("theirs", StopReason.MAX_STEPS)
    imported = HistoryImported(
        format="other", document="{}", messages=(UserMessage("hello"),), last_run=last
    )
    projection = fold(STARTED, FINISHED, imported)
    assert state(projection) == ([UserMessage("hello")], last, None)


def test_messages_from_outside_a_turn_join_the_transcript() -> None:
    more = MessagesAppended(run_id="r", messages=(UserMessage("one"), UserMessage("two")))
    steering = SteeringApplied(run_id="r", input_id="i", content="left", target_turn=1)
    texts = [message.content for message in fold(STARTED, more, steering).messages]
    assert texts == ["hi", "one", "two", "left"]


@pytest.mark.parametrize(
    "body",
    [
        BranchCreated(intent=BranchIntent.FORK, source_branch_id="main"),
        BranchPromoted(source_branch_id="side", previous_head_id=""),
    ],
    ids=["branch_created", "branch_promoted"],
)
def test_where_a_branch_comes_from_says_nothing_about_its_runs(body: AnyBody) -> None:
    assert state(fold(STARTED, FINISHED, body)) == state(fold(STARTED, FINISHED))


def test_a_checkpoint_with_nothing_to_say_is_the_beginning() -> None:
    assert state(fold(Checkpoint(messages=()))) == state(Projection())
