"""Cancellation of one run: asked once, heard everywhere."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

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
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise AgentCancelledError(self._reason)
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
