import asyncio
import contextlib
from typing import Any

import pytest
from tests.tools.middleware.support import Acting, Intents, go_on
from tests.tools.support import context_for, context_of_call, prepared, runtime_of

from runlane.journal.wire.records import ToolOutcome
from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.tools import (
    FunctionTool,
    StepOutcome,
    ToolCallContext,
    ToolEffect,
    ToolNext,
    ToolResult,
    tool,
)
from runlane.worker.tools.middleware.time_limit import time_limit

LATE = "no result within 0.01 s, which the run had left"


@tool
async def untouched() -> None:
    pytest.fail("must not start")


async def in_time(
    act: Any,
    touched: FunctionTool[..., Any],
    *,
    remaining_s: float = 0.01,
    intents: Intents | None = None,
    token: CancellationToken | None = None,
) -> ToolResult:
    """Make a call of a run that has no more time than that."""
    async with runtime_of(touched, middlewares=[Acting(act)], cancel_grace_s=0.01) as runtime:
        ready = prepared(runtime, touched.definition.name)
        context = context_for(ready, context_of_call(token))
        begin = (intents or Intents()).begin
        return await runtime.execute(ready, context, begin=begin, remaining_s=remaining_s)


async def hang(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    await asyncio.Event().wait()
    return await call_next(context)


async def swallow(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return await call_next(context)


@pytest.mark.parametrize("act", [hang, swallow])
async def test_a_middleware_has_no_more_time_than_its_run(act: Any) -> None:
    intents = Intents()
    assert await in_time(act, untouched, intents=intents) == ToolResult.cancelled("untouched", LATE)
    assert intents.begun == []


async def test_a_tool_has_what_its_middlewares_leave_of_the_time() -> None:
    @tool(timeout_s=1000)
    async def wait() -> None:
        await asyncio.Event().wait()

    assert await in_time(go_on, wait) == ToolResult.cancelled("wait", LATE)


@pytest.mark.parametrize(
    ("effect", "outcome"),
    [
        (ToolEffect.SIDE_EFFECTING, ToolOutcome.UNKNOWN),
        (ToolEffect.READ_ONLY, ToolOutcome.CANCELLED),
    ],
)
async def test_a_tool_that_does_not_stop_in_time_is_abandoned(
    effect: ToolEffect, outcome: ToolOutcome
) -> None:
    @tool(effect=effect)
    async def stubborn() -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        ended.set()

    release, ended = asyncio.Event(), asyncio.Event()
    assert (await in_time(go_on, stubborn)).outcome is outcome
    release.set()
    await ended.wait()


async def test_a_result_that_a_tool_gives_when_the_time_is_up_counts() -> None:
    @tool
    async def pay() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "paid"
        return "unpaid"

    assert await in_time(go_on, pay) == ToolResult("paid", ToolOutcome.OK)


async def test_within_its_time_a_call_still_stops_with_its_run() -> None:
    async def leave(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        token.cancel("user left")
        return await hang(context, call_next)

    token = CancellationToken()
    result = await in_time(leave, untouched, remaining_s=1000, token=token)
    assert result == ToolResult.cancelled("untouched", "user left")


async def test_a_limit_leaves_the_run_as_it_is() -> None:
    run = CancellationToken()
    with time_limit(run, 0) as call:
        await call.wait()
    assert not run.cancelled
    with time_limit(run, 1000) as call:
        assert not call.cancelled
    run.cancel("enough")
    assert not call.cancelled


async def test_a_limit_is_over_with_its_call() -> None:
    with time_limit(CancellationToken(), 0) as call:
        pass
    for _ in range(3):
        await asyncio.sleep(0)
    assert not call.cancelled


async def test_no_limit_and_a_run_that_is_cancelled_need_no_other_token() -> None:
    run = CancellationToken()
    with time_limit(run, None) as call:
        assert call is run
    run.cancel("enough")
    with time_limit(run, 1000) as call:
        assert call is run
