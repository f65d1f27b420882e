"""One attempt of one run: the loop's view of the journal."""

from typing import Any

from runlane.journal.errors import ServerError
from runlane.journal.partition import Partition
from runlane.journal.projection import Projection
from runlane.journal.transitions import append, finish
from runlane.journal.wire.events import Event, EventKind
from runlane.journal.wire.records import AnyBody
from runlane.journal.wire.results import AgentRunResult
from runlane.worker.loop.ending import Ending
from runlane.worker.loop.session import HandBackSignal
from runlane.worker.session.held import HeldLease, LeaseLostError
from runlane.worker.session.publisher import Publisher


class JournaledRun:
    """Implements `RunSession` on a branch that this worker holds.

    Args:
        partition: Where the session lives.
        held: The lease.
        projection: The branch as it was checked out.
        head: Record id of its last record.
        server_changed: Whether the server restarted or failed over since the run's last response.
    """

    def __init__(
        self,
        partition: Partition,
        held: HeldLease,
        agent_name: str,
        *,
        projection: Projection,
        head: str,
        server_changed: bool,
    ) -> None:
        self.run_id = held.lease.run_id
        self.session_id = held.lease.session_id
        self.agent_name = agent_name
        self.attempt = held.lease.attempt
        self.cancellation = held.cancellation
        self.projection = projection
        self.server_changed = server_changed
        self._partition = partition
        self._held = held
        self._head = head
        self._publisher = Publisher(partition, held)

    async def commit(self, *bodies: AnyBody, progress: bool = True) -> None:
        """Journal records, together with the events that wait, and fold them in.

        Raises:
            WriteRefusedError: The lease was lost; nothing was written.
        """
        entries: list[AnyBody | Event] = [*await self._publisher.take(), *bodies]
        self._held.check()
        try:
            self._head, abort_reason = await append(
                self._partition,
                self._held.lease,
                entries,
                head=self._head,
                progress=progress,
                retry_s=max(self._held.remaining_s, 0),
            )
        except ServerError as error:
            raise LeaseLostError(self.run_id, f"its records were not taken ({error})") from error
        self._publisher.committed()
        for body in bodies:
            self.projection.add(self._held.lease.branch_id, body)
        if abort_reason is not None:
            self.cancellation.cancel(abort_reason)

    async def finish(self, ending: Ending, result: AgentRunResult) -> str | None:
        """End the run with its last records; return the reason of an abort that wins over it.

        Raises:
            WriteRefusedError: The lease was lost; nothing was written.
        """
        entries = [*await self._publisher.take(), *ending.last]
        if ending.turn:
            self.emit(EventKind.TURN_COMPLETED, ending.turn)
            entries += await self._publisher.take()
        self._held.check()
        self._held.ending = True
        try:
            finished = await finish(
                self._partition,
                self._held.lease,
                result,
                entries=entries,
                head=self._head,
                retry_s=max(self._held.remaining_s, 0),
            )
        except ServerError as error:
            raise LeaseLostError(self.run_id, f"its records were not taken ({error})") from error
        self._held.ending = finished.abort_reason is None
        return finished.abort_reason

    def emit(self, kind: EventKind, turn: int, payload: dict[str, Any] | None = None) -> None:
        """Let subscribers hear a provisional event."""
        self._publisher.emit(kind, turn, payload)

    def say(self, turn: int, delta: str) -> None:
        """Let subscribers hear more of the model's text."""
        self._publisher.say(turn, delta)

    def check_lease(self) -> None:
        """Raise if the lease is not held.

        Raises:
            LeaseLostError: It is not.
        """
        self._held.check()

    def check_drain(self) -> None:
        """Raise if the worker stops.

        Raises:
            HandBackSignal: It does.
        """
        if self._held.draining.is_set():
            raise HandBackSignal

    async def close(self) -> None:
        """Stop publishing."""
        await self._publisher.close()
