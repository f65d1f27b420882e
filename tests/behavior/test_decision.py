from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.messages import UserMessage
from runlane.worker.behavior import BehaviorAction, BehaviorDecision

NASTY_TEXT = st.text(alphabet=list("a0 {}\\\n\x00é€😀\ud800\udfff"), max_size=10)


@pytest.mark.parametrize(
    ("decision", "given_fields"),
    [
        (BehaviorDecision.proceed(), set[str]()),
        (BehaviorDecision.stop(), {"action"}),
        (BehaviorDecision.stop("paused", reason="late"), {"action", "output", "reason"}),
        (BehaviorDecision.deny("no"), {"denied", "reason"}),
        (BehaviorDecision.replace_arguments({}), {"arguments"}),
        (BehaviorDecision.replace_messages([]), {"messages"}),
        (BehaviorDecision.prefix_output("mind: "), {"prefix"}),
        (BehaviorDecision.steer_with("left", "right"), {"steer"}),
        (
            BehaviorDecision(denied=True, prefix="mind: ", steer=("left",)),
            {"denied", "prefix", "steer"},
        ),
    ],
)
def test_a_decision_knows_what_it_says(decision: BehaviorDecision, given_fields: set[str]) -> None:
    assert decision.given == given_fields
    assert decision.stops is (decision.action is BehaviorAction.STOP)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"action": "stop"}, "action is of type str, not BehaviorAction"),
        ({"action": BehaviorAction.STOP, "output": 5}, "output is of type int, not str or None"),
        ({"denied": 1}, "denied is of type int, not bool"),
        ({"arguments": [1]}, "arguments is of type list, not Mapping or None"),
        ({"messages": UserMessage("hi")}, "messages is of type UserMessage"),
        ({"prefix": b"x"}, "prefix is of type bytes"),
        ({"steer": "left"}, "steer is of type str, not tuple"),
        ({"steer": ("left", 5)}, "texts that are not empty"),
        ({"steer": ("left", " \n")}, "texts that are not empty"),
        ({"output": "done"}, "an output only if it stops"),
        ({"reason": "because"}, "a reason only if it stops or denies"),
        ({"arguments": {("a", "b"): 1}}, "not a JSON object"),
    ],
)
def test_a_decision_that_cannot_be_meant_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        BehaviorDecision(**fields)


def test_steering_with_nothing_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="needs a text"):
        BehaviorDecision.steer_with()


def test_arguments_that_contain_themselves_are_refused() -> None:
    arguments: dict[str, Any] = {}
    arguments["again"] = arguments
    with pytest.raises(InvalidInputError, match="not a JSON object"):
        BehaviorDecision.replace_arguments(arguments)


@given(NASTY_TEXT, NASTY_TEXT)
def test_every_text_of_a_decision_can_be_stored(one: str, other: str) -> None:
    decision = BehaviorDecision(
        action=BehaviorAction.STOP,
        output=one,
        reason=other,
        prefix=one,
        arguments={other: [one]},
        steer=(f"steer {other}",),
    )
    assert decision.arguments is not None
    ((key, (value,)),) = decision.arguments.items()
    for text in (decision.output, decision.reason, decision.prefix, key, value, *decision.steer):
        assert text is not None
        text.encode()


def test_a_decision_keeps_its_own_arguments() -> None:
    inner = [1]
    arguments = {"amounts": inner, "more": MappingProxyType({"deep": (1, 2)})}
    decision = BehaviorDecision.replace_arguments(arguments)
    inner.append(2)
    arguments["late"] = []
    assert decision.arguments is not None
    assert decision.arguments == {"amounts": [1], "more": {"deep": [1, 2]}}
    assert type(decision.arguments["more"]) is dict
