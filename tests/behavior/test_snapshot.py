import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.behavior.support import TASK, snapshot_of

from runlane.journal.wire.messages import ContextMessage, UserMessage
from runlane.worker.behavior import BehaviorDecision, HookedCall
from runlane.worker.tools import ToolEffect

PLACES = st.none() | st.integers(-8, 8)


def call_with(arguments: dict[str, Any]) -> HookedCall:
    return HookedCall(
        tool_name="pay",
        arguments=arguments,
        tool_call_id="call_1",
        operation_key="run:1:0",
        effect=ToolEffect.SIDE_EFFECTING,
    )


def test_a_snapshot_shows_the_transcript_of_its_moment_without_copying_it() -> None:
    messages: list[ContextMessage] = [TASK]
    snapshot = snapshot_of(messages)
    messages.append(UserMessage("later"))
    assert list(snapshot.messages) == [TASK]
    assert UserMessage("later") not in snapshot.messages
    assert snapshot.messages[-1] is TASK
    with pytest.raises(IndexError):
        snapshot.messages[1]


@given(st.integers(0, 5), st.integers(0, 3), PLACES, PLACES, st.sampled_from([None, 1, 2, -1]))
def test_a_transcript_reads_like_the_tuple_that_it_was(
    length: int, more: int, start: int | None, stop: int | None, step: int | None
) -> None:
    messages: list[ContextMessage] = [UserMessage(str(number)) for number in range(length)]
    was = tuple(messages)
    seen = snapshot_of(messages).messages
    messages += [UserMessage("later")] * more
    assert seen == was
    assert seen != (*was, TASK)
    assert [*seen] == [*was]
    assert len(seen) == length
    assert seen[start:stop:step] == was[start:stop:step]
    assert [*reversed(seen)] == [*reversed(was)]


def test_a_snapshot_cannot_be_changed() -> None:
    snapshot = snapshot_of([TASK])
    with pytest.raises(AttributeError):
        snapshot.turn = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        snapshot.messages[0] = UserMessage("else")  # type: ignore[index]


def test_a_hook_cannot_change_a_call_in_place() -> None:
    arguments = {"amount": 1, "to": {"name": "Ann", "tags": ["a"]}}
    call = call_with(arguments)
    with pytest.raises(TypeError):
        call.arguments["amount"] = 2  # type: ignore[index]
    with pytest.raises(TypeError):
        call.arguments["to"]["name"] = "Bob"
    call.arguments["to"]["tags"].append("b")
    assert arguments == {"amount": 1, "to": {"name": "Ann", "tags": ["a"]}}


def test_arguments_of_a_call_can_be_handed_back_with_a_change() -> None:
    call = call_with({"amount": 1, "to": {"name": "Ann"}, "big": 2**90})
    decision = BehaviorDecision.replace_arguments({**call.arguments, "amount": 2})
    assert json.loads(json.dumps(decision.arguments)) == {
        "amount": 2,
        "to": {"name": "Ann"},
        "big": 2**90,
    }
