"""A branch as a worker sees it: the same, wherever reading began."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.journal.builders import result_of
from tests.journal.strategies import histories

from runlane.journal.projection import ABANDONED_CALL, Projection
from runlane.journal.record_order import RecordOrderError, RunStage
from runlane.journal.wire.messages import (
    AssistantMessage,
    ModelToolCall,
    ModelUsage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.records import (
    CONTROL_BRANCH,
    AnyBody,
    MessageAppended,
    Record,
    RunFinished,
    RunQueued,
    RunStarted,
    ToolCompleted,
    ToolOutcome,
)


def state(projection: Projection) -> tuple[object, ...]:
    return projection.messages, projection.stages, projection.open_run


@given(histories(), st.data())
def test_resuming_from_any_cut_equals_reading_from_the_start(
    records: list[Record], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(records)))
    resumed = Projection("main", records[:cut])
    for record in records[cut:]:
        resumed.add(record.branch_id, record.body)
    assert state(resumed) == state(Projection("main", records))


@given(histories())
def test_an_ended_run_leaves_no_tool_call_without_a_result(records: list[Record]) -> None:
    projection = Projection("main", records)
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


@given(histories())
def test_another_branch_changes_nothing(records: list[Record]) -> None:
    woven = Projection("main")
    for record in records:
        woven.add(record.branch_id, record.body)
        if record.branch_id != CONTROL_BRANCH:
            woven.add("side", record.body)
    assert state(woven) == state(Projection("main", records))


@given(histories(), st.data())
def test_a_record_that_comes_twice_is_noticed_if_it_begins_or_ends_a_run(
    records: list[Record], data: st.DataObject
) -> None:
    edges = [
        index
        for index, record in enumerate(records)
        if record.kind in ("run_queued", "run_started", "run_continued", "run_finished")
    ]
    index = data.draw(st.sampled_from(edges))
    with pytest.raises(RecordOrderError):
        Projection("main", [*records[: index + 1], *records[index:]])


PLACE: dict[str, Any] = {"run_id": "r", "attempt": 1}
CALLS = tuple(ModelToolCall(id=f"c{index}", name="tool") for index in range(2))
HISTORY: list[tuple[str, AnyBody]] = [
    (CONTROL_BRANCH, RunQueued(run_id="r", branch_id="main", intent="run", agent="a")),
    (
        "main",
        RunStarted(**PLACE, agent="a", version="1", worker_id="w", message=UserMessage("hi")),
    ),
    (
        "main",
        MessageAppended(
            **PLACE,
            turn=1,
            message=AssistantMessage("let me see", tool_calls=CALLS),
            usage=ModelUsage(input_tokens=5, output_tokens=7),
        ),
    ),
    (
        "main",
        ToolCompleted(
            **PLACE,
            turn=1,
            index=1,
            outcome=ToolOutcome.OK,
            message=ToolMessage(tool_call_id="c1", tool_name="tool", content="done"),
        ),
    ),
]


def test_an_open_run_shows_what_is_left_to_do() -> None:
    projection = Projection("main")
    for branch, body in HISTORY:
        projection.add(branch, body)
    run = projection.open_run
    assert run is not None
    assert (run.run_id, run.turn, run.calls_without_result()) == ("r", 1, [0])
    assert (run.usage.total_tokens, run.usage.request_count) == (12, 1)
    assert projection.stages == {"r": RunStage.RUNNING}


def test_a_call_that_a_run_left_open_is_answered_when_it_ends() -> None:
    projection = Projection("main")
    for branch, body in HISTORY:
        projection.add(branch, body)
    projection.add("main", RunFinished(run_id="r", branch_id="main", result=result_of()))
    assert projection.open_run is None
    *_, last = projection.messages
    assert last == ToolMessage(
        tool_call_id="c0", tool_name="tool", content=ABANDONED_CALL, is_error=True
    )


def test_a_branch_read_without_its_control_chain_is_complete() -> None:
    projection = Projection("main")
    for branch, body in HISTORY[1:]:
        projection.add(branch, body)
    assert len(projection.messages) == 3
