"""A lease as this process holds it: until when, and whether it is still ours."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from runlane.journal.errors import WriteRefusedError
from runlane.journal.lease import Lease
from runlane.worker.control import CancellationToken, SteeringInbox


class LeaseLostError(WriteRefusedError):
    """This worker could not keep the lease; whoever claims the run next carries it on."""

    def __init__(self, run_id: str, why: str) -> None:
        self.run_id = run_id
        super().__init__(f"run {run_id}: {why}; the run goes on at another worker")


@dataclass(eq=False)
class HeldLease:
    """The lease of one run in this process.

    Attributes:
        lease: What the server gave.
        ends_at: When it ends by this worker's own clock (`time.monotonic`), counted from the
            sending of the claim or of the last renewal that succeeded.
        cancellation: Set when the run is to stop.
        steering: What was said to the run.
        draining: Set when this worker stops.
        ending: The end of the run is on its way: from here on the reply to it says whether the
            lease was held.
        lost: Why the lease is not held any more; empty while it is.
        task: The task that executes the run.
        delivering: The task that brings events to the agent's sink; it may outlive the run.
        afterwards: What is left to be done once the run was given up, while the server was away.
    """

    lease: Lease
    ends_at: float
    cancellation: CancellationToken
    draining: asyncio.Event
    ending: bool = False
    lost: str = ""
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)
    delivering: "asyncio.Task[None] | None" = field(default=None, repr=False)
    afterwards: Callable[[], Awaitable[None]] | None = field(default=None, repr=False)
    steering: SteeringInbox = field(default_factory=SteeringInbox, repr=False)

    @property
    def remaining_s(self) -> float:
        """Seconds until the lease ends; negative after that."""
        return self.ends_at - time.monotonic()

    def lose(self, why: str) -> None:
        """Stop the run without a record: another worker may have it."""
        if not (self.lost or self.ending):
            self.lost = why
            if self.task is not None:
                self.task.cancel()

    def check(self) -> None:
        """Raise unless the lease is held.

        Raises:
            LeaseLostError: It was lost, or has ended by this worker's clock.
        """
        if self.lost:
            raise LeaseLostError(self.lease.run_id, self.lost)
        if self.remaining_s <= 0:
            raise LeaseLostError(self.lease.run_id, "the lease ended before it could be renewed")
