import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.tools.middleware.support import Intents, call_through, go_on

from runlane.journal.wire.records import ToolOutcome
from runlane.worker.control.cancellation import AgentCancelledError, CancellationToken
from runlane.worker.tools import (
    StepOutcome,
    ToolCallContext,
    ToolEffect,
    ToolNext,
    ToolResult,
    tool,
)


@tool
async def untouched() -> None:
    pytest.fail("must not start")


class Stage:
    """A tool and middlewares that wait, and the moments that they reach."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.release = asyncio.Event()
        self.token = CancellationToken()

    async def wait(self) -> None:
        self.waiting.set()
        await self.release.wait()

    async def wait_whatever_comes(self) -> None:
        while not self.release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.wait()

    async def stop_once_waiting(self, call: "asyncio.Task[ToolResult]") -> ToolResult:
        await self.waiting.wait()
        self.token.cancel("user left")
        return await call


async def test_a_cancelled_run_asks_no_middleware() -> None:
    async def fail(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        pytest.fail("must not start")

    token = CancellationToken()
    token.cancel("enough")
    result = await call_through([fail], untouched, token=token)
    assert result == ToolResult.cancelled("untouched", "enough")


async def swallow_then_call(stage: Stage, context: ToolCallContext, call_next: ToolNext) -> Any:
    with contextlib.suppress(asyncio.CancelledError):
        await stage.wait()
    return await call_next(context)


async def swallow_it_all(stage: Stage, context: ToolCallContext, call_next: ToolNext) -> Any:
    with contextlib.suppress(asyncio.CancelledError):
        await stage.wait()
    with contextlib.suppress(AgentCancelledError):
        return await call_next(context)
    return StepOutcome("no matter")


async def call_with_a_token_of_its_own(
    stage: Stage, context: ToolCallContext, call_next: ToolNext
) -> Any:
    with contextlib.suppress(asyncio.CancelledError):
        await stage.wait()
    return await call_next(replace(context, cancellation=CancellationToken()))


@pytest.mark.parametrize("act", [swallow_then_call, swallow_it_all, call_with_a_token_of_its_own])
async def test_a_swallowed_cancellation_cannot_begin_a_call(act: Callable[..., Any]) -> None:
    async def middleware(context: ToolCallContext, call_next: ToolNext) -> Any:
        return await act(stage, context, call_next)

    stage, intents = Stage(), Intents()
    call = asyncio.create_task(
        call_through([go_on, middleware], untouched, intents=intents, token=stage.token)
    )
    result = await stage.stop_once_waiting(call)
    assert intents.begun == []
    assert result.content == "no matter" or result == ToolResult.cancelled("untouched", "user left")


@pytest.mark.parametrize("effect", list(ToolEffect))
async def test_a_middleware_that_never_ends_is_abandoned(effect: ToolEffect) -> None:
    @tool(effect=effect)
    async def touch() -> None:
        pytest.fail("must not start")

    async def stubborn(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        await stage.wait_whatever_comes()
        with contextlib.suppress(Exception):
            return await call_next(context)
        ended.set()
        raise ValueError("heard by nobody")

    stage, intents, ended = Stage(), Intents(), asyncio.Event()
    call = asyncio.create_task(
        call_through([stubborn], touch, intents=intents, token=stage.token, cancel_grace_s=0.01)
    )
    result = await stage.stop_once_waiting(call)
    assert result == ToolResult.cancelled("touch", "user left")
    stage.release.set()
    await ended.wait()
    assert intents.begun == []


@pytest.mark.parametrize("effect", list(ToolEffect))
async def test_a_result_that_a_tool_gives_after_the_stop_counts(effect: ToolEffect) -> None:
    @tool(effect=effect)
    async def pay() -> str:
        try:
            await stage.wait()
        except asyncio.CancelledError:
            return "paid"
        return "unpaid"

    stage = Stage()
    call = asyncio.create_task(call_through([go_on, go_on], pay, token=stage.token))
    assert await stage.stop_once_waiting(call) == ToolResult("paid", ToolOutcome.OK)


async def test_a_tool_stops_with_its_run_whatever_token_a_middleware_hands_on() -> None:
    @tool
    async def wait() -> None:
        await stage.wait()

    async def replace_token(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        return await call_next(replace(context, cancellation=CancellationToken()))

    stage = Stage()
    call = asyncio.create_task(call_through([replace_token], wait, token=stage.token))
    assert await stage.stop_once_waiting(call) == ToolResult.cancelled("wait", "user left")


async def test_an_intent_is_journaled_to_its_end_though_its_run_is_stopped() -> None:
    async def write() -> None:
        await stage.wait()
        for _ in range(10):
            await asyncio.sleep(0)

    stage = Stage()
    intents = Intents(write)
    call = asyncio.create_task(call_through([go_on], untouched, intents=intents, token=stage.token))
    await stage.waiting.wait()
    stage.token.cancel("user left")
    stage.release.set()
    assert await call == ToolResult.cancelled("untouched", "user left")
    assert intents.begun == [{}]


async def test_a_result_whose_middleware_never_ends_counts() -> None:
    @tool
    async def pay() -> str:
        return "paid"

    async def stubborn(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        outcome = await call_next(context)
        await stage.wait_whatever_comes()
        return outcome

    stage = Stage()
    call = asyncio.create_task(
        call_through([stubborn], pay, token=stage.token, cancel_grace_s=0.01)
    )
    assert await stage.stop_once_waiting(call) == ToolResult("paid", ToolOutcome.OK)
    stage.release.set()


@pytest.mark.parametrize(
    ("effect", "outcome"),
    [
        (ToolEffect.SIDE_EFFECTING, ToolOutcome.UNKNOWN),
        (ToolEffect.IDEMPOTENT, ToolOutcome.CANCELLED),
        (ToolEffect.READ_ONLY, ToolOutcome.CANCELLED),
    ],
)
async def test_a_tool_that_ignores_the_stop_is_abandoned_through_middlewares(
    effect: ToolEffect, outcome: ToolOutcome
) -> None:
    @tool(effect=effect)
    async def stubborn() -> None:
        await stage.wait_whatever_comes()
        ended.set()

    stage, ended = Stage(), asyncio.Event()
    call = asyncio.create_task(
        call_through([go_on], stubborn, token=stage.token, cancel_grace_s=0.01)
    )
    assert (await stage.stop_once_waiting(call)).outcome is outcome
    stage.release.set()
    await ended.wait()


async def test_what_a_middleware_makes_of_a_stop_does_not_hide_a_call_in_doubt() -> None:
    @tool
    async def stubborn() -> None:
        await stage.wait_whatever_comes()
        ended.set()

    async def swallow(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        with contextlib.suppress(asyncio.CancelledError):
            return await call_next(context)
        return StepOutcome("nothing happened")

    stage, ended = Stage(), asyncio.Event()
    call = asyncio.create_task(
        call_through([swallow], stubborn, token=stage.token, cancel_grace_s=0.01)
    )
    assert (await stage.stop_once_waiting(call)).outcome is ToolOutcome.UNKNOWN
    stage.release.set()
    await ended.wait()


async def give_up(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    try:
        async with asyncio.timeout(0.01):
            return await call_next(context)
    except TimeoutError:
        return StepOutcome("too slow")


async def test_a_tool_stops_when_its_middleware_gives_it_up() -> None:
    @tool
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    cleaned = asyncio.Event()
    result = await call_through([give_up], slow)
    assert cleaned.is_set()
    assert result.content == "too slow"


async def test_a_call_that_was_given_up_is_no_result_of_a_stopped_run() -> None:
    @tool
    async def slow() -> None:
        await asyncio.Event().wait()

    async def give_up_and_wait(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        await give_up(context, call_next)
        await stage.wait()
        return StepOutcome("too late")

    stage = Stage()
    call = asyncio.create_task(call_through([give_up_and_wait], slow, token=stage.token))
    assert await stage.stop_once_waiting(call) == ToolResult.cancelled("slow", "user left")


async def test_a_call_that_is_left_behind_before_it_has_begun_is_not_made() -> None:
    async def leave_behind(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        behind.append(asyncio.ensure_future(call_next(context)))
        await stage.waiting.wait()
        stage.release.set()
        return StepOutcome("no time to wait")

    stage = Stage()
    behind: list[asyncio.Future[StepOutcome]] = []
    intents = Intents(stage.wait)
    result = await call_through([leave_behind], untouched, intents=intents)
    assert intents.begun == [{}]
    assert result.content == "no time to wait"
    with pytest.raises(Exception, match="the call has ended"):
        await behind[0]


async def test_an_intent_is_journaled_to_its_end_but_its_tool_not_called_once_given_up() -> None:
    async def give_up_at_once(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        call = asyncio.ensure_future(call_next(context))
        await stage.waiting.wait()
        call.cancel()
        await asyncio.wait({call})
        stage.release.set()
        return StepOutcome("too slow")

    stage = Stage()
    intents = Intents(stage.wait)
    result = await call_through([give_up_at_once], untouched, intents=intents)
    assert intents.begun == [{}]
    assert result.content == "too slow"


@pytest.mark.parametrize(
    ("effect", "content"),
    [(ToolEffect.SIDE_EFFECTING, "paid"), (ToolEffect.READ_ONLY, "no time to wait")],
)
async def test_a_call_that_a_middleware_leaves_behind_does_not_outlive_its_result(
    effect: ToolEffect, content: str
) -> None:
    @tool(effect=effect)
    async def pay() -> str:
        stage.waiting.set()
        try:
            for _ in range(10):
                await asyncio.sleep(0)
        finally:
            ended.set()
        return "paid"

    async def leave_behind(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        behind.append(asyncio.ensure_future(call_next(context)))
        await stage.waiting.wait()
        return StepOutcome("no time to wait")

    stage, ended = Stage(), asyncio.Event()
    behind: list[asyncio.Future[StepOutcome]] = []
    result = await call_through([leave_behind], pay)
    assert ended.is_set()
    assert result.content == content
    await asyncio.wait(behind)


async def test_a_call_that_has_ended_cannot_begin() -> None:
    async def call_later(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        rest.append((context, call_next))
        return StepOutcome("done")

    rest: list[tuple[ToolCallContext, ToolNext]] = []
    intents = Intents()
    assert (await call_through([call_later], untouched, intents=intents)).content == "done"
    ((context, call_next),) = rest
    with pytest.raises(Exception, match="the call has ended"):
        await call_next(context)
    assert intents.begun == []


async def test_the_end_of_the_worker_goes_through_middlewares_and_the_tool() -> None:
    @tool
    async def wait() -> None:
        try:
            await stage.wait()
        finally:
            cleaned.append("tool")

    async def clean(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        try:
            return await call_next(context)
        finally:
            cleaned.append("middleware")

    stage = Stage()
    cleaned: list[str] = []
    call = asyncio.create_task(call_through([clean], wait))
    await stage.waiting.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert cleaned == ["tool", "middleware"]


@pytest.mark.parametrize("act", [swallow_then_call, swallow_it_all, call_with_a_token_of_its_own])
async def test_a_middleware_that_swallows_the_end_of_the_worker_cannot_begin_a_call(
    act: Callable[..., Any],
) -> None:
    async def middleware(context: ToolCallContext, call_next: ToolNext) -> Any:
        return await act(stage, context, call_next)

    stage, intents = Stage(), Intents()
    call = asyncio.create_task(call_through([go_on, middleware], untouched, intents=intents))
    await stage.waiting.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert intents.begun == []


async def test_the_end_of_the_worker_lets_no_call_begin_that_waits_for_its_intent() -> None:
    @tool
    async def pay() -> None:
        paid.append(1)

    async def insist(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        going_on = asyncio.ensure_future(call_next(context))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        stage.release.set()
        return await going_on

    stage = Stage()
    paid: list[int] = []
    intents = Intents(stage.wait)
    call = asyncio.create_task(call_through([insist], pay, intents=intents))
    await stage.waiting.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (intents.begun, paid) == ([{}], [])


async def test_the_end_of_the_worker_does_not_wait_for_an_intent() -> None:
    stage = Stage()
    call = asyncio.create_task(call_through([go_on], untouched, intents=Intents(stage.wait)))
    await stage.waiting.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_the_end_of_the_worker_stops_a_call_that_a_middleware_left_behind() -> None:
    @tool
    async def wait() -> None:
        try:
            await stage.wait()
        finally:
            cleaned.set()

    async def leave_behind(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        behind.append(asyncio.ensure_future(call_next(context)))
        await stage.waiting.wait()
        asyncio.get_running_loop().call_soon(call.cancel)
        return StepOutcome("no time to wait")

    stage, cleaned = Stage(), asyncio.Event()
    behind: list[asyncio.Future[StepOutcome]] = []
    call = asyncio.create_task(call_through([leave_behind], wait))
    with pytest.raises(asyncio.CancelledError):
        await call
    assert cleaned.is_set()
    await asyncio.wait(behind)


async def test_the_end_of_the_worker_does_not_wait_for_a_stubborn_tool() -> None:
    @tool
    async def stubborn() -> None:
        await stage.wait_whatever_comes()
        ended.set()

    stage, ended = Stage(), asyncio.Event()
    call = asyncio.create_task(call_through([go_on], stubborn, cancel_grace_s=0.01))
    await stage.waiting.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not ended.is_set()
    stage.release.set()
    await ended.wait()


async def test_a_tool_has_its_timeout_however_long_its_middlewares_take() -> None:
    @tool(timeout_s=0.01)
    async def slow() -> None:
        await asyncio.Event().wait()

    result = await call_through([go_on], slow)
    assert result.outcome is ToolOutcome.ERROR
    assert "no result within 0.01 s" in json.loads(result.content)["error"]
