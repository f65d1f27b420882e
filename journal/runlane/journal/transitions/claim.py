"""queued, or leased / running whose lease has ended → leased."""

import os
from collections.abc import Sequence

from msgspec import Struct

from runlane.journal.ids import new_request_id
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.wire.records import AttemptCause


class ClaimedRun(Struct, frozen=True):
    """A run that now belongs to this worker.

    Attributes:
        lease: The right to carry it on.
        job: Its encoded job; empty if that is lost.
    """

    lease: Lease
    job: bytes


class Claim(Struct, frozen=True):
    """What a claim brought.

    Attributes:
        wait_s: Until the next run of these queues is due, in seconds; None if there is none.
        runs: Runs to carry on.
        exhausted: Ids of runs over their crash limits, to be settled.
    """

    wait_s: float | None
    runs: tuple[ClaimedRun, ...]
    exhausted: tuple[str, ...]


async def claim(
    partition: Partition,
    *,
    worker_id: str,
    queues: Sequence[str],
    slots: int,
    lease_ms: int,
    crashes_max: int,
    crashes_total_max: int,
) -> Claim:
    """Lease due runs to a worker, at most `slots` and its fair share of the backlog.

    A reply that was lost is asked for again, and names the same runs.

    Raises:
        ServerUnavailableError: The server is away.
    """
    request_id = new_request_id()
    wait_ms, runs, exhausted = await partition.transition(
        "claim",
        request_id,
        worker_id,
        request_id,
        os.urandom(8).hex(),
        lease_ms,
        slots,
        crashes_max,
        crashes_total_max,
        *queues,
    )
    return Claim(
        wait_s=None if wait_ms < 0 else wait_ms / 1000,
        runs=tuple(_claimed(run) for run in runs),
        exhausted=tuple(run_id.decode() for run_id in exhausted),
    )


def _claimed(run: tuple[bytes, bytes, bytes, bytes, int, bytes, bytes, bytes]) -> ClaimedRun:
    run_id, session_id, branch_id, fence, attempt, cause, job, queue = run
    lease = Lease(
        run_id=run_id.decode(),
        session_id=session_id.decode(),
        branch_id=branch_id.decode(),
        queue=queue.decode(),
        fence=fence.decode(),
        attempt=attempt,
        cause=AttemptCause(cause.decode()) if cause else None,
    )
    return ClaimedRun(lease=lease, job=job)
