"""Each tool result stands behind its call, and each call has one."""

from runlane.journal.transcript import ABANDONED_CALL
from runlane.journal.transfer.transcript import Transcript
from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    ModelToolCall,
    ToolMessage,
    UserMessage,
)


def calling(*ids: str) -> AssistantMessage:
    return AssistantMessage(tool_calls=tuple(ModelToolCall(call_id, "look") for call_id in ids))


def told(call_id: str, text: str = "done") -> ToolMessage:
    return ToolMessage(tool_call_id=call_id, tool_name="look", content=text)


def lost(call_id: str) -> ToolMessage:
    return ToolMessage(
        tool_call_id=call_id, tool_name="look", content=ABANDONED_CALL, is_error=True
    )


HI = UserMessage("hi")


def repaired(*messages: ContextMessage, run_open: bool = False) -> list[ContextMessage]:
    return list(Transcript(messages).messages(run_open=run_open))


def test_a_sound_transcript_stays_as_it_is() -> None:
    sound: list[ContextMessage] = [HI, calling("a", "b"), told("b"), told("a"), HI]
    assert repaired(*sound) == sound


def test_a_late_result_moves_behind_its_call() -> None:
    assert repaired(calling("a"), HI, told("a")) == [calling("a"), told("a"), HI]


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    assert repaired(calling("a", "b"), told("b"), HI) == [
        calling("a", "b"),
        told("b"),
        lost("a"),
        HI,
    ]


def test_results_of_an_open_run_may_still_come() -> None:
    assert repaired(calling("a"), HI, calling("b"), run_open=True) == [
        *(calling("a"), lost("a"), HI),
        calling("b"),
    ]


def test_an_id_that_comes_again_belongs_to_the_latest_call() -> None:
    assert repaired(calling("a"), calling("a"), told("a", "new")) == [
        *(calling("a"), lost("a")),
        *(calling("a"), told("a", "new")),
    ]


def test_a_result_of_no_call_is_dropped_and_counted() -> None:
    transcript = Transcript([HI, told("x")])
    assert list(transcript.messages()) == [HI]
    assert transcript.dropped == 1


def test_a_result_without_a_name_takes_that_of_its_call() -> None:
    nameless = ToolMessage(tool_call_id="a", tool_name="", content="done")
    assert repaired(calling("a"), nameless) == [calling("a"), told("a")]
