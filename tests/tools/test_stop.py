import asyncio
import contextlib
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.tools.support import context_of_call, execute, prepared, runtime_of

from runlane.journal.wire.records import ToolOutcome
from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.tools import (
    ToolCallContext,
    ToolEffect,
    ToolResult,
    tool,
)


def payload(result: ToolResult) -> Any:
    return json.loads(result.content)


async def test_a_cancelled_run_starts_nothing() -> None:
    @tool
    async def touch() -> None:
        pytest.fail("must not start")

    token = CancellationToken()
    token.cancel("enough")
    async with runtime_of(touch) as runtime:
        result = await execute(runtime, prepared(runtime, "touch"), context_of_call(token))
    assert result == ToolResult.cancelled("touch", "enough")


async def test_cancellation_stops_a_tool() -> None:
    started, cleaned = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    token = CancellationToken()
    async with runtime_of(wait) as runtime:
        call = asyncio.create_task(
            execute(runtime, prepared(runtime, "wait"), context_of_call(token))
        )
        await started.wait()
        token.cancel("user left")
        result = await call
    assert cleaned.is_set()
    assert payload(result) == {"status": "cancelled", "tool": "wait", "error": "user left"}
    assert result.outcome is ToolOutcome.CANCELLED


async def test_a_tool_may_stop_by_asking_the_token() -> None:
    started = asyncio.Event()

    @tool
    async def wait(context: ToolCallContext) -> None:
        started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        context.cancellation.raise_if_cancelled()

    token = CancellationToken()
    async with runtime_of(wait) as runtime:
        call = asyncio.create_task(
            execute(runtime, prepared(runtime, "wait"), context_of_call(token))
        )
        await started.wait()
        token.cancel("user left")
        assert await call == ToolResult.cancelled("wait", "user left")


async def test_a_result_that_came_in_spite_of_the_stop_is_kept() -> None:
    started = asyncio.Event()

    @tool
    async def pay() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "paid"
        return "unpaid"

    token = CancellationToken()
    async with runtime_of(pay) as runtime:
        call = asyncio.create_task(
            execute(runtime, prepared(runtime, "pay"), context_of_call(token))
        )
        await started.wait()
        token.cancel()
        assert await call == ToolResult("paid", ToolOutcome.OK)


async def test_a_timeout_is_an_error_that_says_so() -> None:
    @tool(timeout_s=0.01)
    async def wait() -> None:
        await asyncio.Event().wait()

    async with runtime_of(wait) as runtime:
        result = await execute(runtime, prepared(runtime, "wait"), context_of_call())
    assert result.outcome is ToolOutcome.ERROR
    assert "no result within 0.01 s" in payload(result)["error"]


@pytest.mark.parametrize(
    ("effect", "outcome"),
    [
        (ToolEffect.SIDE_EFFECTING, ToolOutcome.UNKNOWN),
        (ToolEffect.IDEMPOTENT, ToolOutcome.CANCELLED),
        (ToolEffect.READ_ONLY, ToolOutcome.CANCELLED),
    ],
)
async def test_a_tool_that_ignores_cancellation_is_abandoned(
    effect: ToolEffect, outcome: ToolOutcome
) -> None:
    started, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool(effect=effect)
    async def stubborn() -> None:
        started.set()
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        ended.set()
        raise ValueError("heard by nobody")

    token = CancellationToken()
    async with runtime_of(stubborn, cancel_grace_s=0.01) as runtime:
        call = asyncio.create_task(
            execute(runtime, prepared(runtime, "stubborn"), context_of_call(token))
        )
        await started.wait()
        token.cancel("user left")
        result = await call
        assert result.outcome is outcome
        assert not ended.is_set()
        release.set()
        await ended.wait()


@pytest.mark.parametrize(
    ("effect", "outcome"),
    [
        (ToolEffect.SIDE_EFFECTING, ToolOutcome.UNKNOWN),
        (ToolEffect.READ_ONLY, ToolOutcome.ERROR),
    ],
)
async def test_a_thread_that_outlives_its_timeout_is_abandoned(
    effect: ToolEffect, outcome: ToolOutcome
) -> None:
    release = threading.Event()

    @tool(effect=effect, timeout_s=0.01)
    def stuck() -> None:
        release.wait()

    async with runtime_of(stuck, cancel_grace_s=0.01) as runtime:
        result = await execute(runtime, prepared(runtime, "stuck"), context_of_call())
        release.set()
    assert result.outcome is outcome


async def test_a_thread_that_ends_within_the_grace_period_gives_its_result() -> None:
    started, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @tool
    def slow(context: ToolCallContext) -> str:
        loop.call_soon_threadsafe(started.set)
        release.wait()
        return f"stopped: {context.cancellation.cancelled}"

    token = CancellationToken()
    async with runtime_of(slow) as runtime:
        call = asyncio.create_task(
            execute(runtime, prepared(runtime, "slow"), context_of_call(token))
        )
        await started.wait()
        token.cancel()
        release.set()
        assert await call == ToolResult("stopped: True", ToolOutcome.OK)


async def test_the_end_of_the_worker_goes_through_the_tool_and_on() -> None:
    started, cleaned = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    async with runtime_of(wait) as runtime:
        call = asyncio.create_task(execute(runtime, prepared(runtime, "wait"), context_of_call()))
        await started.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert cleaned.is_set()


async def test_the_end_of_the_worker_does_not_wait_for_a_stubborn_tool() -> None:
    started, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool
    async def stubborn() -> None:
        started.set()
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        ended.set()

    async with runtime_of(stubborn, cancel_grace_s=0.01) as runtime:
        call = asyncio.create_task(
            execute(runtime, prepared(runtime, "stubborn"), context_of_call())
        )
        await started.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        release.set()
        await ended.wait()


class CountingToken(CancellationToken):
    """A token that knows who listens to it."""

    def __init__(self) -> None:
        super().__init__()
        self.listening = 0

    def add_callback(self, callback: Callable[[], object]) -> None:
        self.listening += 1
        super().add_callback(callback)

    def remove_callback(self, callback: Callable[[], object]) -> None:
        self.listening -= 1
        super().remove_callback(callback)


async def test_a_call_costs_one_task_and_leaves_nothing_behind() -> None:
    token = CountingToken()
    tasks = asyncio.all_tasks()

    @tool
    async def count() -> int:
        assert token.listening == 1
        return len(asyncio.all_tasks() - tasks)

    @tool(timeout_s=0.01)
    async def wait() -> None:
        await asyncio.Event().wait()

    async with runtime_of(count, wait) as runtime:
        counted = await execute(runtime, prepared(runtime, "count"), context_of_call(token))
        await execute(runtime, prepared(runtime, "wait"), context_of_call(token))
    assert counted == ToolResult("1", ToolOutcome.OK)
    assert token.listening == 0
    assert asyncio.all_tasks() == tasks


async def test_every_call_that_goes_on_hears_a_cancellation() -> None:
    started, stopped = asyncio.Semaphore(0), 0

    @tool(effect=ToolEffect.READ_ONLY)
    async def wait() -> None:
        nonlocal stopped
        started.release()
        try:
            await asyncio.Event().wait()
        finally:
            stopped += 1

    token = CancellationToken()
    async with runtime_of(wait) as runtime:
        calls = [
            asyncio.create_task(execute(runtime, prepared(runtime, "wait"), context_of_call(token)))
            for _ in range(20)
        ]
        for _ in calls:
            await started.acquire()
        assert token.cancel("user left")
        assert not token.cancel("again")
        results = await asyncio.gather(*calls)
    assert stopped == len(calls)
    assert results == [ToolResult.cancelled("wait", "user left")] * len(calls)


async def test_a_tool_that_cancels_its_own_run_is_stopped_like_any_other() -> None:
    @tool
    async def quit_run(context: ToolCallContext) -> None:
        context.cancellation.cancel("the tool wants it")
        await asyncio.Event().wait()

    async with runtime_of(quit_run) as runtime:
        result = await execute(runtime, prepared(runtime, "quit_run"))
    assert result == ToolResult.cancelled("quit_run", "the tool wants it")
