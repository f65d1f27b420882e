import asyncio
import contextlib
import gc

import pytest

from runlane.worker.control.cancellation import (
    REASON_BYTES_MAX,
    AgentCancelledError,
    CallToken,
    CancellationToken,
    OutOfTimeError,
)


class Deaf:
    """Work that ignores that it is cancelled, until it is released."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.ended = asyncio.Event()

    async def work(self) -> str:
        self.started.set()
        while not self.release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.release.wait()
        self.ended.set()
        raise ValueError("heard by nobody")

    async def end(self) -> None:
        self.release.set()
        await self.ended.wait()


async def say(text: str) -> str:
    return text


async def test_work_gives_its_result() -> None:
    assert await CancellationToken().run(say("done"), timeout_s=1000) == "done"


async def test_work_that_gives_a_result_when_it_is_stopped_is_heard() -> None:
    async def finish() -> str:
        token.cancel("enough")
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "finished"

    token = CancellationToken()
    assert await token.run(finish()) == "finished"


async def test_work_that_cancels_itself_is_no_stop_of_the_run() -> None:
    async def leave() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await CancellationToken().run(leave(), timeout_s=1000)


async def test_work_that_listens_is_awaited_when_it_is_stopped() -> None:
    async def clean() -> None:
        token.cancel("enough")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    token, cleaned = CancellationToken(), asyncio.Event()
    with pytest.raises(AgentCancelledError, match="enough"):
        await token.run(clean())
    assert cleaned.is_set()


async def test_deaf_work_is_abandoned_when_its_run_is_cancelled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    token, deaf = CancellationToken(), Deaf()
    waiter = asyncio.create_task(token.run(deaf.work(), grace_s=0.01))
    await deaf.started.wait()
    token.cancel("user left")
    with pytest.raises(AgentCancelledError, match="user left"):
        await waiter
    gc.collect()
    await deaf.end()
    (logged,) = caplog.records
    assert logged.getMessage() == "work ignores that it was stopped; it is abandoned"


async def test_deaf_work_is_abandoned_when_its_time_is_up() -> None:
    deaf = Deaf()
    with pytest.raises(OutOfTimeError, match="no result within"):
        await CancellationToken().run(deaf.work(), timeout_s=0.01, grace_s=0.01)
    await deaf.end()


async def test_the_end_of_the_worker_does_not_wait_for_deaf_work() -> None:
    deaf = Deaf()
    waiter = asyncio.create_task(CancellationToken().run(deaf.work(), grace_s=0.01))
    await deaf.started.wait()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    await deaf.end()


async def test_a_cancelled_run_closes_the_work_that_it_does_not_start() -> None:
    token = CancellationToken()
    token.cancel("enough")
    with pytest.raises(AgentCancelledError, match="enough"):
        await token.run(say("never"))
    gc.collect()  # a coroutine that was left behind warns here


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        ("enough", "enough"),
        ("bad \ud800", "bad \ufffd"),
        ("é" * REASON_BYTES_MAX, "é" * (REASON_BYTES_MAX // 2)),
        ("a" + "é" * REASON_BYTES_MAX, "a" + "é" * (REASON_BYTES_MAX // 2 - 1)),
    ],
)
def test_a_journal_can_keep_any_reason(reason: str, kept: str) -> None:
    token = CancellationToken()
    assert token.cancel(reason)
    assert token.reason == kept


def test_a_call_stops_with_its_run_and_cancels_it() -> None:
    run = CancellationToken()
    call = CallToken(CallToken(run))
    assert call.cancel("enough")
    assert not call.cancel("again")
    assert (run.reason, call.reason) == ("enough", "enough")
    assert CallToken(run).reason == "enough"


def test_a_call_that_is_stopped_leaves_its_run_and_can_still_cancel_it() -> None:
    run = CancellationToken()
    call = CallToken(run)
    call.stop("too slow")
    assert (run.cancelled, call.reason) == (False, "too slow")
    assert call.cancel("enough")
    assert (run.reason, call.reason) == ("enough", "too slow")


def test_a_call_that_has_ended_does_not_stop_with_its_run() -> None:
    run = CancellationToken()
    call = CallToken(run)
    call.unlink()
    run.cancel("enough")
    assert not call.cancelled
