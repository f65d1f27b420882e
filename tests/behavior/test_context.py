import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from tests.behavior.support import TASK, snapshot_of

from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    ModelToolCall,
    ToolMessage,
    UserMessage,
)
from runlane.worker.behavior import (
    BehaviorHookError,
    ContextTransform,
    HintProvider,
    TurnSnapshot,
    hinted,
    transformed,
)
from runlane.worker.control import AgentCancelledError, CancellationToken

TOOL_TURN = (
    AssistantMessage(None, (ModelToolCall("call_1", "look"),)),
    ToolMessage("call_1", "look", "seen"),
)


async def transform(
    function: Any, messages: Sequence[ContextMessage] = (TASK,), timeout_s: float | None = None
) -> list[ContextMessage]:
    return await transformed(
        function, messages, cancellation=CancellationToken(), timeout_s=timeout_s
    )


async def hint(
    function: Any, messages: Sequence[ContextMessage], timeout_s: float | None = None
) -> Sequence[ContextMessage]:
    return await hinted(
        function,
        messages,
        snapshot_of(),
        cancellation=CancellationToken(),
        timeout_s=timeout_s,
    )


def giving(value: object) -> Callable[[object], Any]:
    return lambda _: value


def drop_first(messages: tuple[ContextMessage, ...]) -> Sequence[ContextMessage]:
    return messages[1:]


def add_one(messages: tuple[ContextMessage, ...]) -> Sequence[ContextMessage]:
    return [*messages, UserMessage("more\udc00")]


async def later(messages: tuple[ContextMessage, ...]) -> Sequence[ContextMessage]:
    await asyncio.sleep(0)
    return messages[1:]


@pytest.mark.parametrize("function", [drop_first, later])
async def test_a_transform_may_wait_or_not(function: ContextTransform) -> None:
    history: list[ContextMessage] = [TASK, *TOOL_TURN]
    assert await transform(function, history) == [*TOOL_TURN]
    assert history == [TASK, *TOOL_TURN]


async def test_messages_that_a_transform_passes_on_are_the_same_ones() -> None:
    first, second = await transform(add_one)
    assert first is TASK
    assert second == UserMessage("more\ufffd")


def failing(_: object) -> None:
    raise LookupError("no memory")


async def never(_: object) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (failing, "failing failed in context_transform: LookupError: no memory"),
        (partial(failing), "failing failed in context_transform: LookupError"),
        (never, "never failed in context_transform: no result within 0.01 s"),
        (giving(None), "NoneType is no sequence of messages"),
        (giving("text"), "str is no sequence of messages"),
        (giving([{"role": "user", "content": "hi"}]), "dict is no message"),
        (giving([UserMessage(5)]), "a UserMessage cannot be used"),  # type: ignore[arg-type]
        (giving([UserMessage(object())]), "a UserMessage cannot be used"),  # type: ignore[arg-type]
    ],
)
async def test_a_transform_that_fails_is_named(function: Any, why: str) -> None:
    with pytest.raises(BehaviorHookError, match=why):
        await transform(function, timeout_s=0.01 if function is never else None)


def say(_: object) -> str:
    return "it is late"


async def say_later(_: object) -> str:
    await asyncio.sleep(0)
    return "it is late"


@pytest.mark.parametrize("provider", [say, say_later])
async def test_a_hint_ends_the_request(provider: HintProvider) -> None:
    assert await hint(provider, [TASK]) == [UserMessage("do it\n\nit is late")]
    assert await hint(provider, [TASK, *TOOL_TURN]) == [
        *(TASK, *TOOL_TURN),
        UserMessage("it is late"),
    ]
    assert await hint(provider, []) == [UserMessage("it is late")]


@pytest.mark.parametrize("nothing", [None, ""])
async def test_no_hint_changes_nothing(nothing: str | None) -> None:
    history = [TASK]
    assert await hint(giving(nothing), history) is history


async def test_a_hint_leaves_the_conversation_as_it_is_and_can_be_sent() -> None:
    history = [TASK]
    assert await hint(giving("late \ud83d"), history) == [UserMessage("do it\n\nlate \ufffd")]
    assert history == [TASK]


async def test_a_provider_is_shown_the_run() -> None:
    def tell(snapshot: TurnSnapshot) -> str:
        return f"{snapshot.run_id} {snapshot.turn}"

    assert await hint(tell, []) == [UserMessage("run 1")]


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        (failing, "failing failed in hint_provider: LookupError: no memory"),
        (never, "never failed in hint_provider: no result within 0.01 s"),
        (giving(0), "int is no text"),
        (giving(["late"]), "list is no text"),
    ],
)
async def test_a_provider_that_fails_is_named(provider: Any, why: str) -> None:
    with pytest.raises(BehaviorHookError, match=why):
        await hint(provider, [TASK], timeout_s=0.01 if provider is never else None)


async def test_an_abort_interrupts_a_transform() -> None:
    token = CancellationToken()

    async def wait(_: object) -> Any:
        token.cancel("user left")
        await asyncio.Event().wait()

    with pytest.raises(AgentCancelledError, match="user left"):
        await transformed(wait, [TASK], cancellation=token, timeout_s=None)
