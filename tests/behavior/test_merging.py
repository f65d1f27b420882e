"""How the decisions of several hooks become one: against a plain fold."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.behavior.support import SHOWN, snapshot_of

from runlane.journal.wire.messages import UserMessage
from runlane.worker.behavior import BehaviorAction, BehaviorDecision, BehaviorHooks
from runlane.worker.behavior.hooks import PHASES
from runlane.worker.control import CancellationToken

WORDS = st.sampled_from(["a", "b", "c"])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "action": st.sampled_from([BehaviorAction.CONTINUE] * 3 + [BehaviorAction.STOP]),
    "output": WORDS,
    "reason": WORDS,
    "denied": st.booleans(),
    "arguments": st.dictionaries(WORDS, st.integers(0, 3), max_size=2),
    "messages": st.lists(st.builds(UserMessage, WORDS), max_size=2),
    "prefix": WORDS,
    "steer": st.lists(WORDS, max_size=2).map(tuple),
}


def sensible(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields without those that mean nothing beside the others."""
    stops = fields.get("action") is BehaviorAction.STOP
    idle = {
        "output": not stops,
        "reason": not (stops or fields.get("denied")),
    }
    return {name: value for name, value in fields.items() if not idle.get(name)}


def decisions(phase: str) -> st.SearchStrategy[list[dict[str, Any] | None]]:
    """What each of several hooks decides at a moment, as plain fields; None is no decision."""
    optional = {name: VALUES[name] for name in sorted(PHASES[phase].fields)}
    decided = st.fixed_dictionaries({}, optional=optional).map(sensible)
    return st.lists(st.none() | decided, max_size=4)


def folded(
    phase: str, decided: Sequence[dict[str, Any] | None]
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return what they come to, and what each hook that is asked has been shown by those before."""
    total: dict[str, Any] | None = None
    shown: list[dict[str, Any]] = []
    for fields in decided:
        so_far = total or {}
        shown.append({name: so_far[name] for name in ("arguments", "messages") if name in so_far})
        if fields is None:
            continue
        total = dict(so_far)
        for name, value in fields.items():
            match name:
                case "prefix":
                    total[name] = f"{total[name]}\n{value}" if name in total else value
                case "steer":
                    total[name] = (*total.get(name, ()), *value)
                case "denied":
                    total[name] = total.get(name, False) or value
                case _:
                    total[name] = value
        if fields.get("action") is BehaviorAction.STOP:
            break
        if phase == "before_tool" and fields.get("denied"):
            break
    return total, shown


class Scripted:
    def __init__(self, phase: str, fields: dict[str, Any] | None) -> None:
        self.shown: dict[str, Any] | None = None

        async def method(snapshot: object, *shown: Any, cancellation: object) -> Any:
            self.shown = dict(zip(PHASES[phase].shown[1:], shown, strict=True))
            return None if fields is None else BehaviorDecision(**fields)

        setattr(self, phase, method)


@given(st.fixed_dictionaries({phase: decisions(phase) for phase in PHASES}))
async def test_hooks_come_to_what_a_plain_fold_of_their_decisions_says(
    of_phases: dict[str, list[dict[str, Any] | None]],
) -> None:
    for phase, decided in of_phases.items():
        await check_phase(phase, decided)


async def check_phase(phase: str, decided: list[dict[str, Any] | None]) -> None:
    hooks = [Scripted(phase, fields) for fields in decided]
    decision = await BehaviorHooks(hooks, timeout_s=None).decide(
        phase,
        snapshot_of(),
        *(SHOWN[name] for name in PHASES[phase].shown[1:]),
        cancellation=CancellationToken(),
    )
    total, shown = folded(phase, decided)
    assert decision == (None if total is None else BehaviorDecision(**total))
    asked = [hook.shown for hook in hooks if hook.shown is not None]
    assert len(asked) == len(shown)
    for seen, replaced in zip(asked, shown, strict=True):
        if "messages" in seen:
            assert seen["messages"] == tuple(replaced.get("messages", SHOWN["messages"]))
        if phase == "before_tool":
            assert seen["call"].arguments == replaced.get("arguments", {"amount": 1})
            assert seen["call"].operation_key == "run:1:0"
