"""Cancellation of one run: asked once, heard everywhere."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from runlane.journal.errors import RunlaneError

T = TypeVar("T")


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
        """Ask to stop; return False if that was asked before. The first reason stays."""
        if self.cancelled:
            return False
        self._reason = reason
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

    async def run(self, work: Awaitable[T], *, timeout_s: float | None = None) -> T:
        """Return the result of `work`, unless somebody asks to stop before it is there.

        Work that has finished wins a tie; work that has not is cancelled and awaited.

        Raises:
            AgentCancelledError: The stop came first.
            OutOfTimeError: `timeout_s` seconds were over first.
        """
        self.raise_if_cancelled()
        future = asyncio.ensure_future(work)
        self._callbacks.add(future.cancel)
        timer = None if timeout_s is None else _Timer(future, timeout_s)
        try:
            return await future
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller and caller.cancelling():
                raise
            if self.cancelled:
                raise AgentCancelledError(self._reason) from None
            if timer is not None and timer.expired:
                raise OutOfTimeError(timer.timeout_s) from None
            raise
        finally:
            self._callbacks.discard(future.cancel)
            if timer is not None:
                timer.stop()
            if not future.done():
                future.cancel()
                await asyncio.gather(future, return_exceptions=True)


class _Timer:
    """Cancels work when its time is over; `asyncio.timeout` would cancel who waits for it."""

    def __init__(self, work: asyncio.Future[Any], timeout_s: float) -> None:
        self.expired = False
        self.timeout_s = timeout_s
        self._work = work
        self._handle = asyncio.get_running_loop().call_later(timeout_s, self._expire)

    def stop(self) -> None:
        self._handle.cancel()

    def _expire(self) -> None:
        self.expired = True
        self._work.cancel()
