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

from runlane.journal.projection import Projection
from runlane.journal.record_order import RecordOrderError
from runlane.journal.repeats import count_repeats
from runlane.journal.transcript import ABANDONED_CALL, faults
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
    ToolStarted,
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
    Repeated,
    Spent,
    SteeringApplied,
    SummaryEntry,
)


def state(projection: Projection) -> tuple[object, ...]:
    return projection.messages, projection.last_run, projection.open_run, projection.spent


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
def test_a_compaction_stands_for_all_before_it_too(path: list[Record], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(path)))
    before = Projection(path[:cut])
    if before.open_run is not None and before.open_run.in_turn:
        return
    compaction = before.with_state(COMPACTION)
    later = data.draw(st.integers(cut, len(path)))
    whole, resumed = before, Projection()
    for projection in (whole, resumed):
        projection.add(compaction)
        for record in path[cut:later]:
            projection.add(record.body, record.parent_id)
    assert gist(resumed) == gist(whole)
    assert resumed.checkpoint() == whole.checkpoint()


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
    whole = Projection(path)
    if ahead.open_run is not None and whole.open_run is not None:
        ahead.open_run.base_id = whole.open_run.base_id  # what is yet to come has no ids
    assert state(ahead) == state(whole)
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


SUMMARY = SummaryEntry(
    content="they said hi",
    source="model",
    history_start_index=0,
    first_kept_index=1,
    summarized_message_count=1,
    tokens_before=9,
)
COMPACTION = CompactionApplied(
    operation_id="o", summary=SUMMARY, messages=(UserMessage("they said hi"),)
)


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
    _, repeated = count_repeats(Repeated(), ASKED.message.tool_calls)
    assert checkpoint.open_run == OpenRunState(
        run_id="r",
        base_id="7-1.abc",
        turn=1,
        usage=usage,
        task="hi",
        tool_calls=2,
        repeated=repeated,
    )
    assert checkpoint.spent == Spent(usage=usage, turns=1, tool_calls=2)


def test_a_run_of_another_id_does_not_fit_an_open_one() -> None:
    for stranger in (STARTED, ASKED, DONE, FINISHED):
        with pytest.raises(RecordOrderError):
            fold(STARTED, replace(stranger, run_id="other"))


def test_a_compaction_puts_its_messages_in_the_place_of_all_before() -> None:
    other = replace(DONE, index=0, message=replace(DONE.message, tool_call_id="c0"))
    projection = fold(STARTED, ASKED, other, DONE, COMPACTION)
    assert projection.messages == list(COMPACTION.messages)
    assert projection.spent.tool_calls == 2
    assert projection.open_run is not None
    assert (projection.open_run.task, projection.open_run.tool_calls) == ("hi", 2)


def test_an_import_stands_for_the_whole_history() -> None:
    last = LastRun("theirs", StopReason.MAX_STEPS)
    imported = HistoryImported(
        format="other", document="{}", messages=(UserMessage("hello"),), last_run=last
    )
    projection = fold(STARTED, FINISHED, imported)
    assert state(projection) == ([UserMessage("hello")], last, None, Spent())


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


def test_messages_that_may_not_fit_a_model_are_known_also_behind_a_checkpoint() -> None:
    """Calls without a result, and results without a call, come from elsewhere only."""
    asked = AssistantMessage(None, (ModelToolCall("c", "look"),))
    stray = ToolMessage(tool_call_id="x", tool_name="look", content="?")
    messages = (UserMessage("hello"), asked, UserMessage("well?"), stray)
    imported = HistoryImported(format="other", document="{}", messages=messages)
    assert faults(messages)
    projection = fold(imported)
    assert projection.messages == list(messages)
    checkpoint = projection.checkpoint()
    assert checkpoint is not None
    assert (projection.foreign, fold(checkpoint).foreign) == (True, True)
    assert not fold(STARTED, ASKED).foreign
    assert fold(STARTED, MessagesAppended(run_id="r", messages=messages)).foreign


def test_the_same_state_goes_on_from_a_checkpoint_with_everything_that_was_counted() -> None:
    started = ToolStarted(
        run_id="r",
        attempt=1,
        turn=1,
        index=0,
        call=ASKED.message.tool_calls[0],
        operation_key="k",
        effect="read_only",
        counted=("policy:a", "b"),
    )
    refused = replace(DONE, index=1, counted=("b",))
    other = replace(DONE, index=0, message=replace(DONE.message, tool_call_id="c0"))
    run = fold(STARTED, ASKED, started, other, refused).open_run
    assert run is not None
    assert run.counters == {"policy:a": 1, "b": 2}
    checkpoint = fold(STARTED, ASKED, started, other, refused).checkpoint()
    assert checkpoint is not None
    resumed = fold(checkpoint)
    assert gist(resumed) == gist(fold(STARTED, ASKED, started, other, refused))
    further = resumed.after([])
    assert further.open_run is not None
    further.open_run.counters["b"] += 1
    assert resumed.open_run is not None
    assert resumed.open_run.counters == {"policy:a": 1, "b": 2}
