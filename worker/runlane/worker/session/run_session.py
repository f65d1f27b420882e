"""One attempt of one run: the loop's view of the journal."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from runlane.journal.checkpoints import Growth
from runlane.journal.errors import ServerError, SessionConflictError, SessionFencedError
from runlane.journal.kill_points import kill_point
from runlane.journal.partition import Partition
from runlane.journal.projection import Projection
from runlane.journal.transitions import Appended, Finished, append, finish, put_blob
from runlane.journal.transitions.entries import Written, settled_of
from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.control import ControlInput
from runlane.journal.wire.events import Event, EventKind
from runlane.journal.wire.records import AnyBody, RunFinished, SteeringDiscarded
from runlane.journal.wire.results import AgentRunResult
from runlane.journal.wire.tree import Checkpoint, CompactionApplied
from runlane.worker.app import Agent
from runlane.worker.loop.ending import Ending
from runlane.worker.loop.session import HandBackSignal
from runlane.worker.session.diverged import keep_aside, lost_suffix
from runlane.worker.session.held import HeldLease, LeaseLostError
from runlane.worker.session.publisher import Publisher
from runlane.worker.session.sinks import Delivery
from runlane.worker.session.trail import Loss, Trail, revision_of

T = TypeVar("T", bound=Appended | Finished)


class JournaledRun:
    """Implements `RunSession` on a branch that this worker holds.

    Args:
        partition: Where the session lives.
        held: The lease.
        agent: The agent, whose sink hears of the run in this process.
        projection: The branch as it was checked out.
        trail: The records that lead to its head.
        growth: How far it has grown since its last checkpoint.
        server_changed: Whether the server restarted or failed over since the run's last response.
        elapsed_s: Seconds since the run began, at its checkout.
    """

    def __init__(
        self,
        partition: Partition,
        held: HeldLease,
        agent: Agent,
        *,
        projection: Projection,
        trail: Trail,
        growth: Growth,
        server_changed: bool,
        elapsed_s: float,
    ) -> None:
        self.run_id = held.lease.run_id
        self.session_id = held.lease.session_id
        self.agent_name = agent.name
        self.attempt = held.lease.attempt
        self.cancellation = held.cancellation
        self.projection = projection
        self.server_changed = server_changed
        self.blob_bytes_max = partition.blob_bytes_max
        self._partition = partition
        self._held = held
        self._trail = trail
        self._growth = growth
        self._delivery = Delivery(agent.event_sink, held.lease)
        held.delivering = self._delivery.task
        self._publisher = Publisher(partition, held, self._delivery)
        self._untold: list[Event] = []
        self._began_at = time.monotonic() - elapsed_s

    @property
    def steering(self) -> tuple[ControlInput, ...]:
        """What was said to the run and is not journaled yet, oldest first."""
        return self._held.steering.waiting

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began, by the server's clock, over all attempts."""
        return time.monotonic() - self._began_at

    async def commit(self, *bodies: AnyBody, progress: bool = True) -> None:
        """Journal records, together with the events that wait, and fold them in.

        Raises:
            WriteRefusedError: The lease was lost; nothing was written.
        """
        entries: list[AnyBody | Event] = [*await self._take(), *bodies]
        self._held.check()
        before = self._trail.head

        async def write(head: str, lost: list[Written]) -> Appended:
            appended = await append(
                self._partition,
                self._held.lease,
                [*lost, *entries],
                head=head,
                progress=progress,
                retry_s=lambda: self._held.remaining_s,  # it grows with each renewal
            )
            self._trail.add(appended, base=head)
            return appended

        appended = await self._write(write, entries)
        self._publisher.committed()
        self._untold = []
        size = sum(len(each.data) for each in appended.written if each.kind)
        self._growth.add(distance=revision_of(appended.head) - revision_of(before), size=size)
        if isinstance(bodies[-1], Checkpoint | CompactionApplied):
            self._growth.restart(len(appended.written[-1].data))
        for body in bodies:
            self.projection.add(body, before)
        self._held.steering.update(appended.inputs)
        self._held.steering.settle([settled for body in bodies if (settled := settled_of(body))])
        if appended.abort_reason is not None:
            self.cancellation.cancel(appended.abort_reason)

    async def finish(self, ending: Ending, result: AgentRunResult, *, discard: bool) -> Finished:
        """End the run with its last records, unless it was told something that comes first.

        Args:
            ending: Why it ends.
            result: What it came to.
            discard: Whether it ends whatever was said to it, and the journal says so.

        Raises:
            WriteRefusedError: The lease was lost; nothing was written.
        """
        entries = [*await self._take(), *ending.last]
        if ending.turn:
            self.emit(EventKind.TURN_COMPLETED, ending.turn)
            entries += await self._publisher.take()
        self._held.check()
        end = RunFinished(run_id=self.run_id, branch_id=self._held.lease.branch_id, result=result)
        checkpoint = None
        if self._growth.due:
            checkpoint = self.projection.after([*ending.last, end]).checkpoint()
        self._held.ending = True
        while True:
            discarded = self._discarded(result) if discard else []
            finished = await self._write_end([*entries, *discarded], end, checkpoint)
            self._held.steering.update(finished.pending)
            if not (discard and finished.pending):
                break
        self._held.ending = finished.ended
        return finished

    async def keep(self, content: bytes, media_type: str) -> BlobRef:
        """Keep content beside the journal; the next commit is to name it.

        Raises:
            WriteRefusedError: The lease was lost; nothing was kept.
        """
        self._held.check()
        try:
            return await put_blob(
                self._partition,
                self._held.lease,
                content,
                media_type,
                retry_s=max(self._held.remaining_s, 0),
            )
        except ServerError as error:
            raise LeaseLostError(self.run_id, f"its content was not taken ({error})") from error

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

    async def reach_turn_boundary(self) -> None:
        """Write a checkpoint if one is due; raise if the worker stops.

        Raises:
            HandBackSignal: It does.
            WriteRefusedError: The lease was lost.
        """
        if self._held.draining.is_set():
            raise HandBackSignal
        run = self.projection.open_run
        begun = run is not None and run.turn > 0  # the end of a short run takes one along
        if begun and self._growth.due and (checkpoint := self.projection.checkpoint()):
            await self.commit(checkpoint)
            kill_point("after_checkpoint")

    async def look_for_losses(self) -> None:
        """Look whether the server still has what it acknowledged, as the run is given up.

        Raises:
            SessionDivergedError: It has not, and somebody else may hold the lane.
            UndecodableError: A record is damaged.
            ArchiveError: Archived records cannot be read.
            ServerUnavailableError: The server is away.
        """
        loss = await self._trail.find_loss(self._partition, self.session_id)
        if loss is None or await self._restore(loss):
            return
        error = await keep_aside(
            self._partition, self._held.lease, self.agent_name, self._trail, loss
        )
        if error is not None:
            raise error

    async def close(self) -> None:
        """Stop publishing; what was heard still goes to the sink."""
        await self._publisher.close()
        self._delivery.close()

    async def _take(self) -> list[Event]:
        """Return the events that wait to travel with records, those of a refused end included."""
        self._untold += await self._publisher.take()
        return self._untold

    def _discarded(self, result: AgentRunResult) -> list[SteeringDiscarded]:
        return [
            SteeringDiscarded(
                run_id=self.run_id,
                branch_id=self._held.lease.branch_id,
                input_id=each.input_id,
                content=each.content,
                reason=result.stop_reason,
            )
            for each in self.steering
        ]

    async def _write_end(
        self, entries: Sequence[AnyBody | Event], end: RunFinished, checkpoint: Checkpoint | None
    ) -> Finished:
        async def write(head: str, lost: list[Written]) -> Finished:
            return await finish(
                self._partition,
                self._held.lease,
                end.result,
                entries=[*lost, *entries],
                head=head,
                retry_s=lambda: self._held.remaining_s,  # it grows with each renewal
                checkpoint=checkpoint,
            )

        return await self._write(write, [*entries, end])

    async def _write(
        self,
        write: Callable[[str, list[Written]], Awaitable[T]],
        entries: Sequence[AnyBody | Event],
    ) -> T:
        """Write on the head; if the server has lost records, on what it has, those first."""
        head = self._trail.head
        with self._delivery.place() as place:
            try:
                try:
                    outcome = await write(head, [])
                    place.wrote(entries, outcome)
                except SessionConflictError:
                    loss = await self._trail.find_loss(self._partition, self.session_id)
                    lost = loss and await lost_suffix(self._partition, self._held.lease, loss)
                    if not (loss and lost):
                        raise
                    outcome = await write(loss.base_id, lost)
                    place.wrote([*lost, *entries], outcome, lost_head=head)
            except ServerError as error:
                why = f"its records were not taken ({error})"
                raise LeaseLostError(self.run_id, why) from error
        return outcome

    async def _restore(self, loss: Loss) -> bool:
        """Append again what was lost, if the lane is still ours; return whether it was."""
        lease = self._held.lease
        try:
            lost = await lost_suffix(self._partition, lease, loss)
            if lost:
                await append(
                    self._partition, lease, lost, head=loss.base_id, progress=False, retry_s=None
                )
        except SessionFencedError:
            return False
        return bool(lost)
