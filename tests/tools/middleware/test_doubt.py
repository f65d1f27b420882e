"""A call whose middleware does not wait for its end."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.tools.middleware.support import call_through

from runlane.journal.wire.records import ToolOutcome
from runlane.worker.tools import (
    StepOutcome,
    ToolCallContext,
    ToolEffect,
    ToolNext,
    ToolResult,
    tool,
)


async def give_up(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    async with asyncio.timeout(0.05):
        return await call_next(context)


async def answer(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    with contextlib.suppress(Exception):
        return await call_next(context)
    return StepOutcome("nothing happened")


async def fail(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    with contextlib.suppress(Exception):
        return await call_next(context)
    raise KeyError("another")


async def give_up_twice(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    going_on = asyncio.ensure_future(call_next(context))
    await asyncio.wait({going_on}, timeout=0.05)
    while not going_on.done():
        going_on.cancel()
        await asyncio.sleep(0)
    return StepOutcome("nothing happened")


async def outcome(effect: ToolEffect, *acts: Any, timeout_s: float | None = None) -> ToolResult:
    """The result of a call of a tool that goes on whoever stops it."""

    @tool(effect=effect, timeout_s=timeout_s)
    async def deaf() -> str:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        ended.set()
        return "paid"

    release, ended = asyncio.Event(), asyncio.Event()
    result = await call_through([*acts], deaf, cancel_grace_s=0.01)
    release.set()
    await ended.wait()
    return result


@pytest.mark.parametrize("acts", [[give_up], [answer, give_up], [fail, give_up], [give_up_twice]])
async def test_a_deaf_call_that_a_middleware_gives_up_is_in_doubt(
    acts: list[Callable[..., Any]],
) -> None:
    assert await outcome(ToolEffect.SIDE_EFFECTING, *acts) == ToolResult.unknown("deaf")


@pytest.mark.parametrize("act", [answer, fail])
async def test_no_middleware_hides_a_call_in_doubt_that_has_run_out_of_time(act: Any) -> None:
    result = await outcome(ToolEffect.SIDE_EFFECTING, act, timeout_s=0.01)
    assert result == ToolResult.unknown("deaf")


@pytest.mark.parametrize("effect", [ToolEffect.READ_ONLY, ToolEffect.IDEMPOTENT])
async def test_of_a_harmless_call_a_middleware_says_what_became(effect: ToolEffect) -> None:
    result = await outcome(effect, answer, give_up)
    assert result == ToolResult("nothing happened", ToolOutcome.OK)


async def test_a_call_that_stops_when_it_is_given_up_is_not_in_doubt() -> None:
    @tool
    async def slow() -> None:
        await asyncio.Event().wait()

    result = await call_through([answer, give_up], slow)
    assert result == ToolResult("nothing happened", ToolOutcome.OK)


async def test_a_tool_hears_that_it_is_given_up() -> None:
    @tool
    async def listen(context: ToolCallContext) -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        heard.append(context.cancellation.reason)
        return "stopped"

    heard: list[str] = []
    await call_through([give_up], listen)
    assert heard == ["a middleware gave the call up"]
