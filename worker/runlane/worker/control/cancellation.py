"""Cancellation of one run: asked once, heard everywhere."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from runlane.journal.errors import RunlaneError

GRACE_S: Final = 5.0
"""Seconds to wait for work that was asked to stop, before it is abandoned."""
REASON_BYTES_MAX: Final = 4096

T = TypeVar("T")
logger = logging.getLogger(__name__)

_running: Final[set[asyncio.Future[Any]]] = set()
"""Keeps work alive that nobody waits for any more."""


class AgentCancelledError(RunlaneError):
    """The run was told to stop; `reason` says why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class OutOfTimeError(RunlaneError):
    """Work took too long, and was cancelled."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__(f"no result within {timeout_s} s")


class CancellationToken:
    """A request to stop that models, tools and the loop can see and wait for."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._reason = ""
        self._callbacks: set[Callable[[], object]] = set()

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked to stop."""
        return self._event.is_set()

    @property
    def reason(self) -> str:
        """Why; empty while nobody asked."""
        return self._reason

    def cancel(self, reason: str = "agent run was aborted") -> bool:
        """Ask to stop; return False if that was asked before. The first reason stays.

        Args:
            reason: Why; a journal can keep what becomes of it: valid UTF-8, 4 KiB at most.
        """
        if self.cancelled:
            return False
        self._reason = _storable(reason)
        self._event.set()
        for callback in tuple(self._callbacks):
            callback()
        return True

    def raise_if_cancelled(self) -> None:
        """Raise if somebody asked to stop.

        Raises:
            AgentCancelledError: With the reason.
        """
        if self.cancelled:
            raise AgentCancelledError(self._reason)

    def add_callback(self, callback: Callable[[], object]) -> None:
        """Have `callback` called at the moment when somebody asks to stop.

        It is not called if that was asked before.
        """
        self._callbacks.add(callback)

    def remove_callback(self, callback: Callable[[], object]) -> None:
        """Undo `add_callback`."""
        self._callbacks.discard(callback)

    async def wait(self) -> None:
        """Return once somebody asks to stop."""
        await self._event.wait()

    async def first_of(self, work: asyncio.Future[Any], timeout_s: float | None) -> None:
        """Return when the work is done, somebody asks to stop, or `timeout_s` seconds are over.

        It is `asyncio.wait` without a task and a set to wait for, which every call would pay for.
        """
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def end(_: object = None) -> None:
            if not ended.done():
                ended.set_result(None)

        timer = None if timeout_s is None else loop.call_later(timeout_s, end)
        work.add_done_callback(end)
        self.add_callback(end)
        try:
            await ended
        finally:
            self.remove_callback(end)
            work.remove_done_callback(end)
            if timer is not None:
                timer.cancel()

    async def run(
        self, work: Awaitable[T], *, timeout_s: float | None = None, grace_s: float = GRACE_S
    ) -> T:
        """Return the result of `work`, unless somebody asks to stop before it is there.

        Work that has finished wins a tie. Work that has not is cancelled and awaited, also if the
        task that waits here is; if it ignores that, it is abandoned.

        Args:
            work: Never started if somebody asked to stop already.
            timeout_s: Seconds that it may take; None for no limit.
            grace_s: Seconds to wait for it once it was cancelled.

        Raises:
            AgentCancelledError: The stop came first.
            OutOfTimeError: `timeout_s` seconds were over first.
            Exception: Whatever the work raises.
        """
        if self.cancelled and asyncio.iscoroutine(work):
            work.close()
        self.raise_if_cancelled()
        future = held(asyncio.ensure_future(work))
        try:
            await self.first_of(future, timeout_s)
        finally:
            stopped = not future.done()
            if stopped:
                future.cancel()
                await asyncio.wait({future}, timeout=grace_s)
                if not future.done():
                    logger.warning("work ignores that it was stopped; it is abandoned")
        if not future.done() or future.cancelled():
            self.raise_if_cancelled()
            if stopped and timeout_s is not None:
                raise OutOfTimeError(timeout_s)
        return future.result()


class CallToken(CancellationToken):
    """The cancellation of one call: it stops with its run, and cancelling it cancels the run.

    Args:
        run: That of the run, or of a larger part of it.
    """

    def __init__(self, run: CancellationToken) -> None:
        super().__init__()
        self._run = run
        if run.cancelled:
            self._follow()
        run.add_callback(self._follow)

    def cancel(self, reason: str = "agent run was aborted") -> bool:
        """Ask the run to stop."""
        return self._run.cancel(reason)

    def stop(self, reason: str) -> None:
        """Ask this call alone to stop."""
        super().cancel(reason)

    def unlink(self) -> None:
        """The call has ended: no longer stop with its run."""
        self._run.remove_callback(self._follow)

    def _follow(self) -> None:
        super().cancel(self._run.reason)


def held(work: asyncio.Future[T]) -> asyncio.Future[T]:
    """Keep work alive until it is done, and see its exception: nobody may be left to do that."""
    _running.add(work)
    work.add_done_callback(_let_go)
    return work


def _let_go(work: asyncio.Future[Any]) -> None:
    _running.discard(work)
    if not work.cancelled():
        work.exception()


def _storable(text: str) -> str:
    valid = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    return valid[:REASON_BYTES_MAX].decode(errors="ignore")
