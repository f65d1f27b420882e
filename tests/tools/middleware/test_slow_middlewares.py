import asyncio
import contextlib
from typing import Any

import pytest
from tests.tools.middleware.support import Acting, Intents, call, go_on
from tests.tools.support import context_for, context_of_call, prepared

from runlane.journal.wire.records import ToolOutcome
from runlane.worker.control.cancellation import CallToken, CancellationToken
from runlane.worker.tools import (
    FunctionTool,
    FunctionToolHandler,
    StepOutcome,
    ToolCallContext,
    ToolEffect,
    ToolNext,
    ToolResult,
    ToolRuntime,
    tool,
)
from runlane.worker.tools.middleware.time_limit import MiddlewareClock

TIMEOUT_S = 0.2
SLOW = f"the middlewares of the call gave no result within {TIMEOUT_S} s"


@tool
async def pay() -> str:
    return "paid"


@tool
async def untouched() -> None:
    pytest.fail("must not start")


async def impatient(
    act: Any, touched: FunctionTool[..., Any], intents: Intents | None = None
) -> ToolResult:
    """Make a call whose middlewares have next to no time."""
    runtime = ToolRuntime(
        [FunctionToolHandler([touched])],
        [Acting(go_on), Acting(act)],
        middleware_timeout_s=TIMEOUT_S,
        cancel_grace_s=0.01,
    )
    await runtime.startup()
    result = await call(runtime, touched.definition.name, intents=intents)
    await runtime.shutdown()
    return result


async def hang(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    await asyncio.Event().wait()
    return await call_next(context)


async def swallow_and_call(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return await call_next(context)


@pytest.mark.parametrize("act", [hang, swallow_and_call])
async def test_a_call_whose_middlewares_hang_is_an_error_and_does_not_begin(act: Any) -> None:
    intents = Intents()
    assert await impatient(act, untouched, intents) == ToolResult.failed("untouched", SLOW)
    assert intents.begun == []


async def test_a_middleware_that_never_ends_is_abandoned() -> None:
    async def deaf(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        ended.set()
        return await call_next(context)

    release, ended = asyncio.Event(), asyncio.Event()
    assert await impatient(deaf, untouched) == ToolResult.failed("untouched", SLOW)
    release.set()
    await ended.wait()


async def call_and_hang(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    with contextlib.suppress(ValueError):
        await call_next(context)
    return await hang(context, call_next)


async def test_of_a_call_that_was_made_the_model_hears_so() -> None:
    made = ToolResult.failed("pay", f"the call was made, but then: {SLOW}")
    assert await impatient(call_and_hang, pay) == made


@pytest.mark.parametrize(
    ("effect", "result"),
    [
        (ToolEffect.SIDE_EFFECTING, ToolResult.unknown("fail")),
        (ToolEffect.IDEMPOTENT, ToolResult.failed("fail", SLOW)),
    ],
)
async def test_a_call_without_a_result_is_in_doubt_if_it_has_side_effects(
    effect: ToolEffect, result: ToolResult
) -> None:
    @tool(effect=effect)
    async def fail() -> None:
        raise ValueError("perhaps half done")

    assert await impatient(call_and_hang, fail) == result


async def go_round() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_clock_stands_still_while_a_tool_is_called_and_once_the_call_has_ended() -> None:
    token = CallToken(CancellationToken())
    clock = MiddlewareClock(token, 0)
    with clock.running():
        with clock.paused():
            with clock.paused():
                await go_round()
            await go_round()
            assert not clock.expired
        await token.wait()
    assert clock.expired
    ended = MiddlewareClock(CallToken(CancellationToken()), 0)
    with ended.paused(), ended.running():
        pass
    await go_round()
    assert not ended.expired


@pytest.mark.parametrize("remaining_s", [None, 1000])
async def test_a_tool_can_cancel_its_run(remaining_s: float | None) -> None:
    @tool
    async def abort(context: ToolCallContext) -> str:
        context.cancellation.cancel("enough")
        return "aborted"

    runtime = ToolRuntime([FunctionToolHandler([abort])], [Acting(go_on)])
    await runtime.startup()
    run = CancellationToken()
    ready = prepared(runtime, "abort")
    context = context_for(ready, context_of_call(run))
    result = await runtime.execute(ready, context, begin=Intents().begin, remaining_s=remaining_s)
    await runtime.shutdown()
    assert result == ToolResult("aborted", ToolOutcome.OK)
    assert run.reason == "enough"
