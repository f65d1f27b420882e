"""What an application makes of the conversation before the model reads it."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from msgspec.structs import replace

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.messages import ContextMessage, UserMessage
from runlane.worker.behavior.asking import ask
from runlane.worker.behavior.errors import BehaviorHookError
from runlane.worker.behavior.messages import sound
from runlane.worker.behavior.snapshot import TurnSnapshot
from runlane.worker.control import CancellationToken
from runlane.worker.tools.texts import storable

ContextTransform: TypeAlias = Callable[
    [tuple[ContextMessage, ...]],
    Sequence[ContextMessage] | Awaitable[Sequence[ContextMessage]],
]
"""Returns the messages that the model reads in the place of the conversation."""

HintProvider: TypeAlias = Callable[[TurnSnapshot], str | Awaitable[str | None] | None]
"""Returns what the model is told in the next request only, or None."""


async def transformed(
    transform: ContextTransform,
    messages: Sequence[ContextMessage],
    *,
    cancellation: CancellationToken,
    timeout_s: float | None,
) -> list[ContextMessage]:
    """Return what the transform makes of the messages; these stay as they are.

    Raises:
        BehaviorHookError: It failed, took too long, or returned something else than messages.
        AgentCancelledError: The run was told to stop.
    """
    name = _name(transform)
    given = await ask(
        name,
        "context_transform",
        lambda: _awaited(transform(tuple(messages))),
        cancellation=cancellation,
        timeout_s=timeout_s,
    )
    try:
        return list(sound(given, known=messages))
    except InvalidInputError as error:
        raise BehaviorHookError(name, "context_transform", str(error)) from error


async def hinted(
    provider: HintProvider,
    messages: Sequence[ContextMessage],
    snapshot: TurnSnapshot,
    *,
    cancellation: CancellationToken,
    timeout_s: float | None,
) -> Sequence[ContextMessage]:
    """Return the messages with a hint at their end, where the provider has one.

    It ends the last message if that is the user's, or is a message of its own: what stands before
    it is the same in each request, as prompt caches need it.

    Raises:
        BehaviorHookError: It failed, took too long, or returned something else than text.
        AgentCancelledError: The run was told to stop.
    """
    name = _name(provider)
    hint = await ask(
        name,
        "hint_provider",
        lambda: _awaited(provider(snapshot)),
        cancellation=cancellation,
        timeout_s=timeout_s,
    )
    if hint is not None and not isinstance(hint, str):
        raise BehaviorHookError(name, "hint_provider", f"{type(hint).__name__} is no text")
    if not hint:
        return messages
    text = storable(hint)
    last = messages[-1] if messages else None
    if isinstance(last, UserMessage):
        return [*messages[:-1], replace(last, content=f"{last.content}\n\n{text}")]
    return [*messages, UserMessage(text)]


async def _awaited(given: Any) -> Any:
    return await given if inspect.isawaitable(given) else given


def _name(function: object) -> str:
    if isinstance(function, partial):
        return _name(function.func)
    return getattr(function, "__qualname__", type(function).__name__)
