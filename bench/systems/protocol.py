"""What a bench needs of a system."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct


class Work(Struct, frozen=True, kw_only=True):
    """What one worker process is to do.

    Attributes:
        url: The server.
        marks: The file in which each job marks its beginning.
        slots: Jobs at once.
        hang: Whether a job goes on for ever after its mark, rather than ending at once.
    """

    url: str
    marks: str
    slots: int
    hang: bool


class Producer(Protocol):
    """A connection that puts jobs into the queue."""

    async def enqueue(self, number: int) -> None:
        """Ask for one job, through the call that a service would use."""
        ...

    async def unfinished(self) -> int:
        """Return how many jobs wait or run, as the server counts them."""
        ...

    async def ended(self) -> int:
        """Return how many jobs have left everything behind that a good one leaves."""
        ...


class System(Protocol):
    """A queue with its workers."""

    def serve(self, work: Work) -> None:
        """Execute jobs in this process until it is killed, in the running thread's event loop."""
        ...

    def connect(self, url: str) -> AbstractAsyncContextManager[Producer]:
        """Connect a producer."""
        ...
