"""Keep a lane to oneself for a while, outside of a run: for an import, a repair, an application.

A hold stands in its lane like a run, so that order, fencing and hand-over are those of runs. It
leaves no record: what its holder appends is all that there is to tell.
"""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog
from redis.exceptions import RedisError

from runlane.journal import tree
from runlane.journal.errors import (
    InvalidInputError,
    ServerError,
    SessionFencedError,
    SessionLockTimeoutError,
)
from runlane.journal.ids import new_request_id, new_run_id
from runlane.journal.link import CONNECT_TIMEOUT_S, LOST, client_for
from runlane.journal.partition import Partition
from runlane.journal.path import read_path
from runlane.journal.projection import Projection
from runlane.journal.record_order import RecordOrderError
from runlane.journal.transitions import append, hold, release
from runlane.journal.transitions.hold import QUEUE, Held, Place
from runlane.journal.tree import SessionCheckout
from runlane.journal.wire.records import (
    KIND_OF,
    AbortRequested,
    AnyBody,
    LeaseStolen,
    RunFinished,
    RunQueued,
)
from runlane.journal.wire.tree import (
    BranchCreated,
    BranchPromoted,
    Checkpoint,
    CompactionApplied,
    LastRun,
)

RECHECK_S: Final = 5.0
"""How long a holder waits that nobody wakes."""

LEAVE_S: Final = 5.0
"""How long a lane is tried to be given up; after that it goes on by itself, with the lease."""

_OF_SCRIPTS: Final = (RunQueued, AbortRequested, LeaseStolen, BranchCreated, BranchPromoted)
"""What only a transition may write."""

logger = structlog.get_logger(__name__)


class HeldLane:
    """A lane that nobody else writes to.

    Attributes:
        run_id: Of the hold: what `abort` and `steal` name it by.
        session_id: With `branch_id`, the lane.
        branch_id: The branch.
    """

    def __init__(self, partition: Partition, place: Place, held: Held) -> None:
        self.run_id = place.run_id
        self.session_id = place.session_id
        self.branch_id = place.branch_id
        self._partition = partition
        self._place = place
        self._lease = held.lease
        self._head = held.head
        self._projection: Projection | None = None
        self._unanswered: tuple[tuple[AnyBody, ...], str] | None = None
        self._wrote = False
        self._last_run: LastRun | None = None

    @property
    def head(self) -> str | None:
        """Record id of the branch's last record; None if it has none."""
        return self._head or None

    async def append(self, *bodies: AnyBody) -> str:
        """Append all of these records or none; return the record id of the new head.

        When no reply came, give the same records again: they are stored once.

        Args:
            bodies: What makes sense outside of a run: a compaction, an imported history, a
                checkpoint, or whole runs, from the start to the end.

        Raises:
            InvalidInputError: They do not fit what the branch says so far.
            SessionFencedError: The lane was lost; nothing was written.
            SessionConflictError: The server has another head than was written here, since it
                lost records; nothing was written, and `checkout` reads the branch anew.
            BlobMissingError: A record names a blob that the session does not have.
            SessionOutcomeUnknownError: No reply came in time.
            ServerUnavailableError: The server is away, and nothing was sent.
        """
        if self._projection is None:
            path = await read_path(self._partition, self.session_id, self._head)
            self._projection = path.project()
        complete, further = self._fold(self._projection, bodies)
        if self._unanswered is None or self._unanswered[0] != bodies:
            self._unanswered = (bodies, new_request_id())
        appended = await append(
            self._partition,
            self._lease,
            complete,
            head=self._head,
            progress=True,
            retry_s=None,
            request_id=self._unanswered[1],
        )
        self._unanswered = None
        self._head = appended.head
        self._projection = further
        self._wrote = True
        self._last_run = further.last_run
        return self._head

    async def checkout(self) -> SessionCheckout:
        """Return the branch as the server has it now, and go on from there.

        Raises:
            UndecodableError: A record is damaged or of a newer version.
            ArchiveError: Archived records cannot be read.
            ServerUnavailableError: The server is away.
        """
        self._projection = self._unanswered = None
        found = await tree.check_out(self._partition, self.session_id, self.branch_id)
        self._head = found.record_id or ""
        return found

    async def keep(self) -> None:
        """Renew the lease until it is lost, or this is cancelled."""
        while True:
            await asyncio.sleep(self._place.lease_ms / 3000)
            try:
                await hold(self._partition, self._place, fence=self._lease.fence)
            except ServerError as error:
                logger.info("hold_not_renewed", run_id=self.run_id, error=str(error))
            except SessionFencedError as error:
                logger.warning("hold_lost", run_id=self.run_id, error=str(error))
                return

    async def release(self) -> bool:
        """Let the lane go, even if this task is cancelled; return False if it was lost before."""
        return await _leave(
            self._partition, self._place, wrote=self._wrote, last_run=self._last_run
        )

    def _fold(
        self, before: Projection, bodies: tuple[AnyBody, ...]
    ) -> tuple[list[AnyBody], Projection]:
        """Return the records, each compaction with the state of the branch, and what they give."""
        further = before.after(())
        complete: list[AnyBody] = []
        for given in bodies:
            body = further.with_state(given) if isinstance(given, CompactionApplied) else given
            self._check(further, body)
            complete.append(body)
            try:
                further.add(body)
            except RecordOrderError as error:
                reason = str(error)
                if further.open_run is None:
                    reason = (
                        f"no run is open to which a {error.kind} could belong; append whole runs"
                    )
                raise InvalidInputError(f"these records do not fit the branch: {reason}") from error
        if not bodies or further.open_run is not None:
            raise InvalidInputError(
                "append whole runs, up to run_finished, in one call: nobody else would end them"
                if bodies
                else "there is nothing to append"
            )
        return complete, further

    def _check(self, before: Projection, body: AnyBody) -> None:
        kind = KIND_OF[type(body)]
        if isinstance(body, _OF_SCRIPTS):
            raise InvalidInputError(f"a {kind} cannot be appended; runlane writes it itself")
        if isinstance(body, RunFinished) and body.branch_id != self.branch_id:
            raise InvalidInputError(f"this {kind} is of branch {body.branch_id!r}")
        if isinstance(body, Checkpoint) and body != before.checkpoint():
            raise InvalidInputError("this checkpoint is not what the records before it say")


@asynccontextmanager
async def hold_lane(
    partition: Partition,
    session_id: str,
    branch_id: str,
    *,
    lease_ms: int,
    timeout: float | None,
) -> AsyncGenerator[HeldLane]:
    """Hold a lane within the block, behind whatever waits in it already.

    Args:
        partition: Where the session lives.
        session_id: The session.
        branch_id: The branch.
        lease_ms: How long the lane stays ours when this process goes silent.
        timeout: How long to wait for the lane, in seconds; None for as long as it takes, 0 tries
            once.

    Raises:
        SessionLockTimeoutError: The lane was not free in that time.
        SessionFencedError: Somebody took the lane away: while it was waited for, or within the
            block, whose end says so.
        UnknownSessionError: There is no such session.
        UnknownBranchError: It has no such branch.
        SessionClosedError: It is being deleted or imported.
        ServerUnavailableError: The server is away.
    """
    place = _new_place(session_id, branch_id, lease_ms)
    try:
        held = await _take(partition, place, timeout)
    except BaseException:
        await _leave(partition, place)
        raise
    lane = HeldLane(partition, place, held)
    keeping = asyncio.create_task(lane.keep())
    released = True
    try:
        yield lane
    finally:
        keeping.cancel()
        released = await lane.release()
    if not released:
        raise SessionFencedError(run_id=place.run_id, fence=held.lease.fence, fence_held="")


def _new_place(session_id: str, branch_id: str, lease_ms: int) -> Place:
    nonce = os.urandom(8).hex()
    return Place(
        run_id=new_run_id(),
        session_id=session_id,
        branch_id=branch_id,
        holder=f"{socket.gethostname()}-{os.getpid()}-{nonce[:6]}",
        nonce=nonce,
        lease_ms=lease_ms,
    )


async def _take(partition: Partition, place: Place, timeout: float | None) -> Held:
    outcome = await hold(partition, place)
    if isinstance(outcome, Held):
        return outcome
    ahead = outcome
    client: Any = client_for(partition.url)  # redis-py leaves it untyped
    try:
        async with asyncio.timeout(timeout):
            while not isinstance(outcome, Held):
                ahead = outcome
                await _called(client, partition.keys.wake(f"{QUEUE}/{place.run_id}"))
                outcome = await hold(partition, place)
            return outcome
    except TimeoutError as error:
        raise SessionLockTimeoutError(
            session_id=place.session_id,
            branch_id=place.branch_id,
            timeout=timeout or 0,
            run_id=ahead.run_id,
            worker=ahead.worker,
            held=ahead.held,
        ) from error
    finally:
        await client.aclose()


async def _called(client: Any, wake: str) -> None:
    """Return when it may be our turn: the server says so, or nobody has for a while."""
    try:
        async with asyncio.timeout(RECHECK_S + CONNECT_TIMEOUT_S):
            await client.execute_command("BLPOP", wake, RECHECK_S)
    except (*LOST, RedisError) as error:
        logger.info("hold_not_called", error=str(error))
        await asyncio.sleep(0.2)


async def _leave(
    partition: Partition, place: Place, *, wrote: bool = False, last_run: LastRun | None = None
) -> bool:
    """Leave the lane, even if this task is cancelled; return False if it was lost before."""

    async def leave() -> bool:
        try:
            return await release(
                partition, place.run_id, wrote=wrote, last_run=last_run, retry_s=LEAVE_S
            )
        except ServerError as error:
            logger.warning("hold_not_released", run_id=place.run_id, error=str(error))
            return True

    return await asyncio.shield(asyncio.create_task(leave()))
