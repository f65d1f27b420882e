"""Cancellation of one run: asked once, heard everywhere."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from runlane.journal.errors import RunlaneError

T = TypeVar("T")


class AgentCancelledError(RunlaneError):
    """The run was told to stop; `reason` says why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class CancellationToken:
    """A request to stop that models, tools and the loop can see and wait for."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._reason = ""
        self._work: set[asyncio.Future[Any]] = set()

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
        for work in self._work:
            work.cancel()
        return True

    def raise_if_cancelled(self) -> None:
        """Raise if somebody asked to stop.

        Raises:
            AgentCancelledError: With the reason.
        """
        if self.cancelled:
            raise AgentCancelledError(self._reason)

    async def wait(self) -> None:
        """Return once somebody asks to stop."""
        await self._event.wait()

    async def run(self, work: Awaitable[T]) -> T:
        """Return the result of `work`, unless somebody asks to stop before it is there.

        Work that has finished wins a tie; work that has not is cancelled and awaited.

        Raises:
            AgentCancelledError: The stop came first.
        """
        self.raise_if_cancelled()
        future = asyncio.ensure_future(work)
        self._work.add(future)
        try:
            return await future
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self.cancelled and not (caller and caller.cancelling()):
                raise AgentCancelledError(self._reason) from None
            raise
        finally:
            self._work.discard(future)
            if not future.done():
                future.cancel()
                await asyncio.gather(future, return_exceptions=True)
