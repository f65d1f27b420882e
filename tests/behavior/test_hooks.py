"""What a hook may be, and what becomes of one that misbehaves."""

import asyncio
import functools
import inspect
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.behavior.support import ENDED, SHOWN, TASK, snapshot_of

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.messages import UserMessage
from runlane.worker.behavior import (
    BehaviorDecision,
    BehaviorHook,
    BehaviorHookError,
    BehaviorHooks,
    TurnSnapshot,
)
from runlane.worker.behavior.asking import ask
from runlane.worker.behavior.hooks import PHASES
from runlane.worker.control import AgentCancelledError, CancellationToken

ALL_FIELDS: dict[str, BehaviorDecision] = {
    "action": BehaviorDecision.stop(),
    "denied": BehaviorDecision(denied=True),
    "arguments": BehaviorDecision.replace_arguments({"amount": 2}),
    "messages": BehaviorDecision.replace_messages([UserMessage("else")]),
    "prefix": BehaviorDecision.prefix_output("mind: "),
    "steer": BehaviorDecision.steer_with("left"),
}


class Once:
    """A hook without a base class, with one method."""

    def __init__(self, phase: str, answer: Any = None) -> None:
        self.shown: tuple[object, ...] = ()

        async def method(*shown: object, cancellation: CancellationToken) -> Any:
            self.shown = shown
            return await answer(cancellation) if inspect.isfunction(answer) else answer

        setattr(self, phase, method)


async def decide(
    phase: str,
    *hooks: object,
    token: CancellationToken | None = None,
    timeout_s: float | None = None,
) -> BehaviorDecision | None:
    more = [ENDED if phase == "on_run_end" else SHOWN[name] for name in PHASES[phase].shown[1:]]
    return await BehaviorHooks(hooks, timeout_s=timeout_s).decide(
        phase, snapshot_of(), *more, cancellation=token or CancellationToken()
    )


async def test_a_hook_as_it_is_written_for_ejagent() -> None:
    class StopAfterFirstToolTurn:
        async def after_turn(
            self, snapshot: TurnSnapshot, *, cancellation: CancellationToken
        ) -> BehaviorDecision | None:
            if snapshot.turn >= 1:
                return BehaviorDecision.stop("paused at a safe Turn boundary")
            return None

    decision = await decide("after_turn", StopAfterFirstToolTurn())
    assert decision == BehaviorDecision.stop("paused at a safe Turn boundary")


async def test_a_subclass_takes_part_only_in_what_it_defines() -> None:
    class Hook(BehaviorHook):
        async def after_model(self, snapshot: TurnSnapshot, **more: Any) -> None:
            await super().after_model(snapshot, **more)

    hooks = BehaviorHooks([Hook()], timeout_s=None)
    assert [phase for phase in PHASES if hooks.wants(phase)] == ["after_model"]
    assert await decide("after_model", Hook()) is None


@pytest.mark.parametrize("phase", PHASES)
async def test_a_hook_is_shown_what_belongs_to_its_moment(phase: str) -> None:
    hook = Once(phase)
    assert await decide(phase, hook) is None
    assert len(hook.shown) == len(PHASES[phase].shown)
    assert isinstance(hook.shown[0], TurnSnapshot)


def no_hooks() -> list[tuple[object, str]]:
    class Nothing(BehaviorHook):
        pass

    class Blocking:
        def after_turn(self, snapshot: TurnSnapshot, *, cancellation: CancellationToken) -> None:
            pass

    class Generating:
        async def after_turn(self, snapshot: object, *, cancellation: object) -> Any:
            yield snapshot

    class Short:
        async def before_tool(self, snapshot: object, *, cancellation: object) -> None:
            pass

    class Deaf:
        async def after_turn(self, snapshot: object) -> None:
            pass

    class Other:
        after_turn = 5

    return [
        (object(), "object is no hook: it has none of on_run_start, "),
        (Nothing(), "Nothing is no hook"),
        (Blocking(), "Blocking.after_turn must be an async method"),
        (Generating(), "Generating.after_turn must be an async method"),
        (Other(), "Other.after_turn must be an async method"),
        (Short(), r"Short.before_tool must take \(snapshot, call, \*, cancellation\)"),
        (Deaf(), r"Deaf.after_turn must take \(snapshot, \*, cancellation\)"),
        (Once, "Once is a class"),
    ]


@pytest.mark.parametrize(("thing", "complaint"), no_hooks())
def test_what_is_no_hook_is_refused_before_any_run(thing: object, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        BehaviorHooks([Once("after_turn"), thing], timeout_s=None)


def test_a_partial_function_may_be_a_method() -> None:
    async def look(extra: int, snapshot: object, *, cancellation: object) -> None:
        pass

    hook = Once("after_model")
    hook.after_turn = functools.partial(look, 1)  # type: ignore[attr-defined]
    assert BehaviorHooks([hook], timeout_s=None).wants("after_turn")


async def test_a_moment_that_nobody_looks_at_starts_no_task() -> None:
    hooks = BehaviorHooks([Once("after_turn")], timeout_s=None)
    before = asyncio.all_tasks()
    deciding = hooks.decide("before_model", snapshot_of(), (), cancellation=CancellationToken())
    with pytest.raises(StopIteration):
        deciding.send(None)  # it never waits
    assert asyncio.all_tasks() == before
    assert not hooks.wants("before_model")


@pytest.mark.parametrize(
    ("phase", "field"), [(phase, field) for phase in PHASES for field in ALL_FIELDS]
)
async def test_a_field_that_a_moment_does_not_know_is_an_error(phase: str, field: str) -> None:
    hook = Once(phase, ALL_FIELDS[field])
    if field in PHASES[phase].fields:
        assert await decide(phase, hook) == ALL_FIELDS[field]
        return
    with pytest.raises(BehaviorHookError, match=f"Once failed in {phase}: .*{field}"):
        await decide(phase, hook)


@pytest.mark.parametrize("answer", [True, "stop", {"action": "stop"}])
async def test_an_answer_that_is_no_decision_is_an_error(answer: object) -> None:
    with pytest.raises(BehaviorHookError, match="not a BehaviorDecision or None") as caught:
        await decide("after_turn", Once("after_turn", answer))
    assert (caught.value.hook, caught.value.phase) == ("Once", "after_turn")


@pytest.mark.parametrize(
    "messages",
    [[{"role": "user"}], [UserMessage(5)], [UserMessage(b"x")], "text"],  # type: ignore[arg-type]
)
async def test_messages_that_no_model_can_read_are_an_error(messages: Any) -> None:
    with pytest.raises(BehaviorHookError, match="before_model"):
        await decide("before_model", Once("before_model", BehaviorDecision(messages=messages)))


async def test_messages_of_a_hook_can_be_stored() -> None:
    decision = BehaviorDecision.replace_messages([TASK, UserMessage("a\ud800é")])
    decided = await decide("before_model", Once("before_model", decision))
    assert decided is not None
    assert decided.messages is not None
    assert decided.messages == (TASK, UserMessage("a\ufffdé"))
    assert decided.messages[0] is TASK, "what was there is passed on, not copied"


async def fail(_: object) -> None:
    raise ValueError("broken")


async def leave(_: object) -> None:
    raise SystemExit("bye")


async def cancel_itself(_: object) -> None:
    raise asyncio.CancelledError


async def be_cancelled_by_another(_: object) -> None:
    raise AgentCancelledError("another run")


async def wait_for_ever(_: object) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (fail, "ValueError: broken"),
        (leave, "RuntimeError: the hook raised SystemExit: bye"),
        (cancel_itself, "it cancelled itself"),
        (be_cancelled_by_another, "it cancelled itself"),
        (wait_for_ever, "no result within 0.01 s"),
    ],
)
async def test_a_hook_that_fails_says_which_and_where(answer: Any, why: str) -> None:
    hook = Once("after_tool", answer)
    timeout_s = 0.01 if answer is wait_for_ever else None
    with pytest.raises(BehaviorHookError, match=f"^hook Once failed in after_tool: {why}$"):
        await decide("after_tool", hook, Once("after_tool"), timeout_s=timeout_s)


async def test_an_abort_interrupts_a_slow_hook() -> None:
    token, cleaned = CancellationToken(), asyncio.Event()

    async def wait(_: object) -> None:
        token.cancel("user left")
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    with capture_logs() as logs, pytest.raises(AgentCancelledError, match="user left"):
        await decide("after_turn", Once("after_turn", wait), token=token)
    assert cleaned.is_set()
    assert logs == []


async def test_a_hook_may_stop_by_asking_the_token() -> None:
    async def look(token: CancellationToken) -> None:
        token.cancel("user left")
        token.raise_if_cancelled()

    with pytest.raises(AgentCancelledError, match="user left"):
        await decide("after_turn", Once("after_turn", look))


async def test_no_hook_is_asked_once_the_run_is_to_stop() -> None:
    token = CancellationToken()
    token.cancel("user left")
    hook = Once("after_turn", fail)
    with pytest.raises(AgentCancelledError, match="user left"):
        await decide("after_turn", hook, token=token)
    assert hook.shown == ()


async def test_an_abort_between_two_hooks_asks_no_further_one() -> None:
    async def abort(token: CancellationToken) -> BehaviorDecision:
        token.cancel("user left")
        return BehaviorDecision.proceed()

    second = Once("after_turn")
    with pytest.raises(AgentCancelledError, match="user left"):
        await decide("after_turn", Once("after_turn", abort), second)
    assert second.shown == ()


async def test_a_cancelled_caller_takes_its_hook_along() -> None:
    begun, cleaned = asyncio.Event(), asyncio.Event()

    async def wait(_: object) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    caller = asyncio.create_task(decide("after_turn", Once("after_turn", wait)))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert cleaned.is_set()


@pytest.mark.parametrize("aborted", [True, False])
async def test_a_hook_that_ignores_being_stopped_is_abandoned_and_logged(aborted: bool) -> None:
    token, released = CancellationToken(), asyncio.Event()

    async def ignore() -> None:
        if aborted:
            token.cancel("secret of the user")
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        raise ValueError("too late for anybody to hear")

    with (
        capture_logs() as logs,
        pytest.raises(AgentCancelledError if aborted else BehaviorHookError),
    ):
        await ask("Deaf", "after_turn", ignore, cancellation=token, timeout_s=0.01, grace_s=0.01)
    released.set()
    assert logs == [
        {
            "event": "hook_abandoned",
            "hook": "Deaf",
            "phase": "after_turn",
            "cancelled": aborted,
            "log_level": "warning",
        }
    ]


async def test_an_answer_that_came_in_spite_of_the_stop_counts() -> None:
    async def answer_late(_: object) -> BehaviorDecision:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return BehaviorDecision.stop("late")
        raise AssertionError

    decision = await decide("after_turn", Once("after_turn", answer_late), timeout_s=0.01)
    assert decision == BehaviorDecision.stop("late")
