import asyncio
import json
import sys
from typing import Any

import pytest
from tests.tools.support import context_of_call, execute, prepared, runtime_of

from runlane.journal.wire.records import ToolOutcome
from runlane.worker.tools import (
    StepOutcome,
    ToolCallContext,
    ToolControl,
    ToolProgressUpdate,
    ToolResult,
    tool,
)


def payload(result: ToolResult) -> Any:
    return json.loads(result.content)


async def test_a_result_is_returned_with_its_control() -> None:
    @tool
    async def add(a: int, b: int) -> StepOutcome:
        return StepOutcome({"sum": a + b}, ToolControl.COMPLETE)

    async with runtime_of(add) as runtime:
        result = await execute(runtime, prepared(runtime, "add", a=1, b=2))
    assert result == ToolResult('{"sum": 3}', ToolOutcome.OK, ToolControl.COMPLETE, '{"sum": 3}')


class OddSignal(BaseException):
    """No `Exception`."""


class MuteError(Exception):
    def __str__(self) -> str:
        raise LookupError("no words")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such order"), "no such order"),
        (ValueError(), "ValueError"),
        (StopIteration(), "the tool raised StopIteration"),
        (SystemExit(2), "the tool raised SystemExit: 2"),
        (GeneratorExit(), "the tool raised GeneratorExit"),
        (OddSignal("odd"), "the tool raised OddSignal: odd"),
        (asyncio.CancelledError(), "the tool cancelled itself"),
        (TimeoutError("upstream"), "upstream"),
    ],
)
async def test_what_a_sync_tool_raises_is_an_error_result(error: BaseException, text: str) -> None:
    @tool
    def fail() -> None:
        raise error

    async with runtime_of(fail) as runtime:
        result = await execute(runtime, prepared(runtime, "fail"))
    assert result.outcome is ToolOutcome.ERROR
    assert payload(result) == {"status": "error", "tool": "fail", "error": text}


async def test_what_an_async_tool_raises_is_an_error_result() -> None:
    @tool
    async def leave() -> None:
        sys.exit(1)

    @tool
    async def cancel() -> None:
        raise asyncio.CancelledError

    async with runtime_of(leave, cancel) as runtime:
        left = await execute(runtime, prepared(runtime, "leave"))
        cancelled = await execute(runtime, prepared(runtime, "cancel"))
    assert payload(left)["error"] == "the tool raised SystemExit: 1"
    assert payload(cancelled)["error"] == "the tool cancelled itself"


@pytest.mark.parametrize("error", [OddSignal("odd"), GeneratorExit(), MuteError()])
async def test_an_async_tool_may_raise_anything(error: BaseException) -> None:
    @tool
    async def fail() -> None:
        raise error

    async with runtime_of(fail) as runtime:
        result = await execute(runtime, prepared(runtime, "fail"))
    assert result.outcome is ToolOutcome.ERROR
    assert type(error).__name__ in payload(result)["error"]


async def test_a_group_of_signals_is_an_error_result() -> None:
    async def signal() -> None:
        raise OddSignal

    @tool
    async def share_out() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(signal())

    async with runtime_of(share_out) as runtime:
        result = await execute(runtime, prepared(runtime, "share_out"))
    assert result.outcome is ToolOutcome.ERROR
    assert "the tool raised BaseExceptionGroup: " in payload(result)["error"]


@pytest.mark.parametrize("text", ["\ud800", "é\udfff" * 10_000_000])
async def test_what_a_tool_raises_is_kept_whatever_it_says(text: str) -> None:
    @tool
    async def fail() -> None:
        raise ValueError(text)

    async with runtime_of(fail) as runtime:
        result = await execute(runtime, prepared(runtime, "fail"))
    assert result.outcome is ToolOutcome.ERROR
    assert len(result.content.encode()) < 5000
    assert result.content.count("bytes are missing]") == (len(text) > 1)


async def test_progress_is_heard_until_the_call_has_settled() -> None:
    later, heard_later = asyncio.Event(), asyncio.Event()

    @tool
    async def work(context: ToolCallContext) -> str:
        async def report_too_late() -> None:
            await later.wait()
            await context.progress.report("too late")
            heard_later.set()

        background.append(asyncio.create_task(report_too_late()))
        await context.progress.report("one")
        await context.progress.report("two", {"of": 2})
        return "done"

    background: list[asyncio.Task[None]] = []
    heard: list[ToolProgressUpdate] = []
    async with runtime_of(work) as runtime:
        await execute(runtime, prepared(runtime, "work"), context_of_call(heard=heard))
    later.set()
    await heard_later.wait()
    assert heard == [ToolProgressUpdate("one"), ToolProgressUpdate("two", {"of": 2})]


async def test_results_over_the_limit_are_cut() -> None:
    @tool
    def long() -> str:
        return "é" * 100

    async with runtime_of(long, result_bytes_max=101) as runtime:
        result = await execute(runtime, prepared(runtime, "long"))
    assert result.content == "é" * 50 + "\n[cut: 100 of 200 bytes are missing]"


async def test_calls_run_side_by_side() -> None:
    both = asyncio.Barrier(2)

    @tool
    async def meet(who: str) -> str:
        await both.wait()
        return who

    async with runtime_of(meet) as runtime:
        results = await asyncio.gather(
            *(execute(runtime, prepared(runtime, "meet", who=who)) for who in ("a", "b"))
        )
    assert [each.content for each in results] == ["a", "b"]
