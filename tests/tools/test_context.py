import asyncio

import pytest
from tests.tools.support import context_of_call

from runlane.journal.errors import InvalidInputError
from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.tools import ToolProgressReporter, ToolProgressUpdate


async def test_updates_arrive_in_the_order_in_which_they_were_reported() -> None:
    heard: list[str] = []
    first_is_held, go = asyncio.Event(), asyncio.Event()

    async def hear(update: ToolProgressUpdate) -> None:
        if update.message == "0":
            first_is_held.set()
            await go.wait()
        heard.append(update.message)

    progress = ToolProgressReporter(hear, CancellationToken())
    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(progress.report(str(number)))
        await first_is_held.wait()
        assert heard == []
        go.set()
    assert heard == ["0", "1", "2", "3", "4"]


async def test_what_is_reported_after_the_end_is_dropped() -> None:
    heard: list[ToolProgressUpdate] = []
    token = CancellationToken()
    cancelled, settled = context_of_call(token, heard), context_of_call(heard=heard)
    await cancelled.progress.report("half", {"done": 0.5})
    await cancelled.progress.report(ToolProgressUpdate("more", 0.6))
    token.cancel()
    settled.progress.settle()
    await cancelled.progress.report("late")
    await settled.progress.report("late")
    assert heard == [
        ToolProgressUpdate("half", {"done": 0.5}),
        ToolProgressUpdate("more", 0.6),
    ]


async def test_what_waits_while_the_call_ends_is_dropped() -> None:
    heard: list[str] = []
    first_is_held, go = asyncio.Event(), asyncio.Event()

    async def hear(update: ToolProgressUpdate) -> None:
        first_is_held.set()
        await go.wait()
        heard.append(update.message)

    progress = ToolProgressReporter(hear, CancellationToken())
    async with asyncio.TaskGroup() as group:
        group.create_task(progress.report("first"))
        group.create_task(progress.report("second"))
        await first_is_held.wait()
        progress.settle()
        go.set()
    assert heard == ["first"]


async def test_an_empty_message_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="must not be empty"):
        await context_of_call().progress.report("")
