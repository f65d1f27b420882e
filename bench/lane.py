"""A lane whose runs the bench carries out itself, through the transitions that a worker uses."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.lab import BenchError
from runlane.journal.archive.archive import Archive
from runlane.journal.ids import MAIN_BRANCH, new_run_id
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.server import launch
from runlane.journal.transitions import ClaimedRun, append, claim, register, submit
from runlane.journal.transitions.register import WorkerInfo
from runlane.journal.wire.jobs import RunJob
from runlane.journal.wire.records import AnyBody
from runlane.journal.wire.results import AgentRunResult
from runlane.worker import Agent, CancellationToken
from runlane.worker.session.execute import execute
from runlane.worker.session.held import HeldLease

AGENT: Final = "bench"
RETRY_S: Final = 10.0
_WORKER: Final = "bench"
LEASE_MS: Final = 600_000
_PAYLOAD_BYTES_MAX: Final = 4 * 1024 * 1024


@asynccontextmanager
async def deployment(
    *, archive: Archive | None = None, cold_s: int = 3600
) -> AsyncGenerator[Partition]:
    """Start an empty server that knows the agent, and connect to it.

    Args:
        archive: Where older records may go; None keeps all of them in the server.
        cold_s: After so long without a run all of a session's records may go there.
    """
    with TemporaryDirectory(prefix="bench-") as name, launch(Path(name) / "server") as server:
        partition = Partition(
            server.url, prefix="rl", retry_s=RETRY_S, archive=archive, cold_s=cold_s
        )
        try:
            await partition.open()
            info = WorkerInfo(host="bench", pid=0, agents={AGENT: "1"}, max_runs=1)
            await register(partition, worker_id=_WORKER, lease_ms=LEASE_MS, info=info)
            yield partition
        finally:
            await partition.close()


async def ask(partition: Partition, session_id: str, task: str) -> str:
    """Ask for a run and return its id."""
    job = RunJob(
        run_id=new_run_id(), session_id=session_id, branch_id=MAIN_BRANCH, agent=AGENT, task=task
    )
    await submit(partition, job, payload_bytes_max=_PAYLOAD_BYTES_MAX)
    return job.run_id


async def take(partition: Partition, run_id: str) -> ClaimedRun:
    """Claim a run as a worker.

    Raises:
        BenchError: Another run was due.
    """
    claimed = await claim(
        partition,
        worker_id=_WORKER,
        queues=[AGENT],
        slots=1,
        lease_ms=LEASE_MS,
        crashes_max=3,
        crashes_total_max=10,
    )
    if [run.lease.run_id for run in claimed.runs] != [run_id]:
        raise BenchError(f"run {run_id} was not the one that was due")
    return claimed.runs[0]


async def carry_out(partition: Partition, claimed: ClaimedRun, agent: Agent) -> AgentRunResult:
    """Execute a claimed run as a worker does, under a lease that is not renewed.

    Raises:
        BenchError: It did not complete.
    """
    held = HeldLease(
        lease=claimed.lease,
        ends_at=time.monotonic() + LEASE_MS / 1000,
        cancellation=CancellationToken(),
        draining=asyncio.Event(),
    )
    result = await execute(partition, held, claimed.job, agents={AGENT: agent}, worker_id=_WORKER)
    if result is None or not result.succeeded:
        raise BenchError(f"the run did not complete: {result}")
    return result


async def server_cpu_s(partition: Partition) -> float:
    """Return the CPU time that the server has taken so far, by its own account."""
    text: bytes = await partition.call("INFO", "cpu")
    fields = dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)
    return float(fields["used_cpu_sys"]) + float(fields["used_cpu_user"])


class Writer:
    """Appends to a branch, one call after another, under a lease that is not renewed.

    Attributes:
        lease: The lease.
        head: Record id of the branch's last record.
    """

    def __init__(self, partition: Partition, lease: Lease, *, head: str = "") -> None:
        self.lease = lease
        self.head = head
        self._partition = partition

    async def append(self, *bodies: AnyBody) -> None:
        """Append records in one call."""
        appended = await append(
            self._partition, self.lease, bodies, head=self.head, progress=True, retry_s=RETRY_S
        )
        self.head = appended.head
