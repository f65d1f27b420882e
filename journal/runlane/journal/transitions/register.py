"""A worker appears, or leaves."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from runlane.journal.partition import Partition


class WorkerInfo(Struct, frozen=True, kw_only=True):
    """What is known of a worker.

    Attributes:
        host: The machine.
        pid: The process on it.
        agents: What it serves: agent → version.
        max_runs: Runs that it executes at once.
    """

    host: str
    pid: int
    agents: Mapping[str, str]
    max_runs: int


async def register(
    partition: Partition,
    *,
    worker_id: str,
    lease_ms: int,
    info: WorkerInfo,
    retry_s: float | None = None,
) -> None:
    """Make a worker and its agents known; with a lease of 0 it leaves, and the agents stay.

    Args:
        partition: The deployment.
        worker_id: The worker.
        lease_ms: How long it is live without a renewal.
        info: What it is and serves.
        retry_s: How long to go on while the server is away; None for the setting.

    Raises:
        ServerUnavailableError: The server is away.
    """
    await partition.transition(
        "register",
        worker_id,
        worker_id,
        lease_ms,
        msgspec.json.encode(info),
        *(word for agent in sorted(info.agents) for word in (agent, info.agents[agent])),
        retry_s=retry_s,
    )
