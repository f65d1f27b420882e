"""What a model can read, and what becomes of a transcript that it cannot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runlane.journal.transcript import (
    ABANDONED_CALL,
    NO_RESULT,
    TranscriptFault,
    TranscriptFaultCode,
    faults,
    repaired,
)
from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    ModelToolCall,
    SystemMessage,
    ToolMessage,
    UserMessage,
)

IDS = st.sampled_from("abc")
MESSAGES: st.SearchStrategy[list[ContextMessage]] = st.lists(
    st.one_of(
        st.builds(UserMessage, st.sampled_from(["hi", "ho"])),
        st.just(SystemMessage("you")),
        st.builds(
            AssistantMessage,
            content=st.none() | st.just("text"),
            tool_calls=st.lists(
                st.builds(ModelToolCall, id=IDS, name=st.just("look")), max_size=3
            ).map(tuple),
        ),
        st.builds(
            ToolMessage, tool_call_id=IDS, tool_name=st.just("look"), content=st.uuids().map(str)
        ),
        st.builds(
            ToolMessage,
            tool_call_id=IDS,
            tool_name=st.just("look"),
            content=st.sampled_from([NO_RESULT, ABANDONED_CALL]),
            is_error=st.just(True),
        ),
    ),
    max_size=12,
)


def use(*ids: str) -> AssistantMessage:
    return AssistantMessage(None, tuple(ModelToolCall(each, "look") for each in ids))


def result(call_id: str, content: str = "seen") -> ToolMessage:
    return ToolMessage(tool_call_id=call_id, tool_name="look", content=content)


def stub(call_id: str) -> ToolMessage:
    return ToolMessage(tool_call_id=call_id, tool_name="look", content=NO_RESULT, is_error=True)


@given(MESSAGES)
def test_a_repaired_transcript_has_no_fault_and_loses_nothing_else(
    messages: list[ContextMessage],
) -> None:
    sound = repaired(messages)
    assert faults(sound) == []
    assert repaired(sound) == sound

    def spoken(transcript: list[ContextMessage]) -> list[object]:
        return [
            (type(each).__name__, each.content)
            for each in transcript
            if not isinstance(each, ToolMessage)
        ]

    assert spoken(sound) == spoken(messages)


@given(MESSAGES)
def test_each_call_is_followed_by_its_result_wherever_that_was(
    messages: list[ContextMessage],
) -> None:
    sound = repaired(messages)
    responses = [place for place, each in enumerate(messages) if calls_of(each)]
    kept = [place for place, each in enumerate(sound) if calls_of(each)]
    for before, after in zip(responses, kept, strict=True):
        ids = list(dict.fromkeys(call.id for call in calls_of(messages[before])))
        behind = sound[after + 1 : after + 1 + len(ids)]
        assert behind == [expected_result(messages, before, call_id) for call_id in ids]


def calls_of(message: ContextMessage) -> tuple[ModelToolCall, ...]:
    return message.tool_calls if isinstance(message, AssistantMessage) else ()


def expected_result(messages: list[ContextMessage], use_at: int, call_id: str) -> ToolMessage:
    """Return the first real result before the next call of that id, or else what stands for it."""
    found: list[ToolMessage] = []
    for message in messages[use_at + 1 :]:
        if call_id in [call.id for call in calls_of(message)]:
            break
        if isinstance(message, ToolMessage) and message.tool_call_id == call_id:
            found.append(message)
    real = [each for each in found if each.content not in (NO_RESULT, ABANDONED_CALL)]
    return next(iter([*real, *found]), stub(call_id))


@given(MESSAGES)
def test_a_sound_transcript_stays_as_it_is(messages: list[ContextMessage]) -> None:
    if not faults(messages):
        assert repaired(messages) == messages


@given(MESSAGES, MESSAGES)
def test_what_is_known_to_be_sound_is_not_looked_at_again(
    before: list[ContextMessage], messages: list[ContextMessage]
) -> None:
    sound = repaired(before)
    whole, start = [*sound, *messages], len(sound)
    if messages and isinstance(messages[0], ToolMessage):
        return  # results belong to the response that they stand behind
    assert faults(whole, start) == faults(whole)
    assert repaired(whole, start) == [*sound, *repaired(messages)]
    assert faults(repaired(whole, start)) == []


@pytest.mark.parametrize(
    ("messages", "code", "expected"),
    [
        ([use("a")], "missing_tool_result", [use("a"), stub("a")]),
        ([result("a"), UserMessage("hi")], "orphan_tool_result", [UserMessage("hi")]),
        ([result("a"), use("a")], "tool_result_before_use", [use("a"), stub("a")]),
        (
            [use("a"), UserMessage("well?"), result("a")],
            "unexpected_tool_result",
            [use("a"), result("a"), UserMessage("well?")],
        ),
        (
            [use("a"), stub("a"), UserMessage("well?"), result("a")],
            "unexpected_tool_result",
            [use("a"), result("a"), UserMessage("well?")],
        ),
        ([use("a", "a"), result("a")], "duplicate_tool_use", [use("a"), result("a")]),
        (
            [use("a"), result("a"), result("a", "again")],
            "duplicate_tool_result",
            [use("a"), result("a")],
        ),
        (
            [use("a", "b"), result("b"), result("a")],
            "result_order_mismatch",
            [use("a", "b"), result("a"), result("b")],
        ),
        (
            [use("a"), UserMessage("well?"), result("a")],
            "missing_tool_result",
            [use("a"), result("a"), UserMessage("well?")],
        ),
        (
            [use("a", "b", "c"), result("c"), result("a")],
            "result_order_mismatch",
            [use("a", "b", "c"), result("a"), stub("b"), result("c")],
        ),
        (
            [use("a"), use("a"), result("a", "of the second")],
            "missing_tool_result",
            [use("a"), stub("a"), use("a"), result("a", "of the second")],
        ),
    ],
)
def test_each_fault_is_named_and_repaired(
    messages: list[ContextMessage], code: str, expected: list[ContextMessage]
) -> None:
    assert TranscriptFaultCode(code) in [fault.code for fault in faults(messages)]
    assert repaired(messages) == expected


def test_ids_may_come_again_in_another_response() -> None:
    assert faults([use("a"), result("a"), use("a"), result("a")]) == []


def test_a_fault_says_where_and_of_which_call() -> None:
    strays = result("a"), result("x")
    messages: list[ContextMessage] = [use("a", "b"), result("b"), UserMessage("well?"), *strays]
    code = TranscriptFaultCode
    assert faults(messages) == [
        TranscriptFault(code.MISSING_TOOL_RESULT, 0, "a"),
        TranscriptFault(code.UNEXPECTED_TOOL_RESULT, 3, "a"),
        TranscriptFault(code.ORPHAN_TOOL_RESULT, 4, "x"),
    ]
