"""All hooks of an agent as one."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from msgspec.structs import replace

from runlane.journal.errors import InvalidInputError
from runlane.worker.behavior.asking import ask
from runlane.worker.behavior.decision import BehaviorDecision
from runlane.worker.behavior.errors import BehaviorHookError
from runlane.worker.behavior.hooks import PHASES, BehaviorHook, Phase
from runlane.worker.behavior.messages import sound
from runlane.worker.behavior.snapshot import HookedCall, TurnSnapshot
from runlane.worker.control import CancellationToken

Method: TypeAlias = Callable[..., Awaitable[BehaviorDecision | None]]


class BehaviorHooks:
    """All hooks of an agent, asked in their order; what they decide is put together.

    | of a decision          | of several hooks                                                 |
    | ---------------------- | ---------------------------------------------------------------- |
    | a stop                 | the first one counts; no hook after it is asked                  |
    | `denied` before a tool | the same                                                         |
    | `denied` after a tool  | one is enough; all hooks are asked                               |
    | `arguments`            | the last ones count; each hook sees those of the one before it   |
    | `messages`             | the same                                                         |
    | `steer`, `prefix`      | all of them, in the order of the hooks                           |
    | `reason`               | the last one that is given                                       |

    Args:
        hooks: Objects with methods of `BehaviorHook`.
        timeout_s: Seconds that one of them may take at a moment; None for no limit.

    Raises:
        InvalidInputError: An object has none of the methods, or one that is not `async` or takes
            something else than it is given.
    """

    def __init__(self, hooks: Sequence[object], *, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self._methods: dict[str, list[tuple[str, Method]]] = {phase: [] for phase in PHASES}
        for hook in hooks:
            methods = _methods_of(hook)
            for phase, method in methods.items():
                self._methods[phase].append((type(hook).__name__, method))

    def wants(self, phase: str) -> bool:
        """Return whether anybody looks in at that moment."""
        return bool(self._methods[phase])

    async def decide(
        self, phase: str, snapshot: TurnSnapshot, *more: Any, cancellation: CancellationToken
    ) -> BehaviorDecision | None:
        """Ask all hooks at a moment; None if they leave everything as it is.

        Args:
            phase: A key of `PHASES`.
            snapshot: The run as it stands.
            *more: What else hooks are shown at that moment.
            cancellation: Stops the asking.

        Raises:
            BehaviorHookError: A hook failed, took too long, or decided what it cannot there.
            AgentCancelledError: The run was told to stop.
        """
        merged: BehaviorDecision | None = None
        for hook, method in self._methods[phase]:
            shown = _as_decided(more, merged)
            answer: object = await ask(
                hook,
                phase,
                partial(method, snapshot, *shown, cancellation=cancellation),
                cancellation=cancellation,
                timeout_s=self._timeout_s,
            )
            if answer is None:
                continue
            decision = _checked(hook, phase, answer, shown)
            merged = decision if merged is None else combined(merged, decision)
            if decision.given & PHASES[phase].last_word:
                break
        return merged


def combined(first: BehaviorDecision, second: BehaviorDecision) -> BehaviorDecision:
    """Return two decisions as one; the second was made in the knowledge of the first."""
    return replace(
        second,
        arguments=first.arguments if second.arguments is None else second.arguments,
        messages=first.messages if second.messages is None else second.messages,
        reason=first.reason if second.reason is None else second.reason,
        denied=first.denied or second.denied,
        prefix="\n".join(filter(None, (first.prefix, second.prefix))) or None,
        steer=first.steer + second.steer,
    )


def _as_decided(more: tuple[Any, ...], merged: BehaviorDecision | None) -> tuple[Any, ...]:
    """Return what the next hook is shown: what the ones before it put in place."""
    if merged is None:
        return more
    if merged.messages is not None:
        return (merged.messages, *more[1:])
    if merged.arguments is not None and isinstance(more[0], HookedCall):
        return (replace(more[0], arguments=merged.arguments), *more[1:])
    return more


def _checked(hook: str, phase: str, answer: object, shown: tuple[Any, ...]) -> BehaviorDecision:
    if not isinstance(answer, BehaviorDecision):
        why = f"it returned {type(answer).__name__}, not a BehaviorDecision or None"
        raise BehaviorHookError(hook, phase, why)
    if unknown := answer.given - PHASES[phase].fields:
        what = ", ".join(sorted(unknown))
        raise BehaviorHookError(hook, phase, f"nothing can be decided there by: {what}")
    if answer.messages is None:
        return answer
    try:
        return replace(answer, messages=sound(answer.messages, known=shown[0]))
    except InvalidInputError as error:
        raise BehaviorHookError(hook, phase, str(error)) from error


def _methods_of(hook: object) -> dict[str, Method]:
    if isinstance(hook, type):
        raise InvalidInputError(f"{hook.__name__} is a class: a hook is an instance of one")
    name = type(hook).__name__
    methods: dict[str, Method] = {}
    for phase, details in PHASES.items():
        method = getattr(hook, phase, None)
        if method is None or getattr(method, "__func__", None) is getattr(BehaviorHook, phase):
            continue
        if not inspect.iscoroutinefunction(method):
            raise InvalidInputError(f"{name}.{phase} must be an async method")
        _check_parameters(f"{name}.{phase}", method, details)
        methods[phase] = cast("Method", method)
    if not methods:
        raise InvalidInputError(f"{name} is no hook: it has none of {', '.join(PHASES)}")
    return methods


def _check_parameters(name: str, method: Callable[..., Any], phase: Phase) -> None:
    try:
        inspect.signature(method).bind(*phase.shown, cancellation=None)
    except TypeError as error:
        wanted = ", ".join(phase.shown)
        raise InvalidInputError(f"{name} must take ({wanted}, *, cancellation): {error}") from error
