"""leased, running → queued."""

from runlane.journal.lease import Lease
from runlane.journal.partition import Partition


async def hand_back(partition: Partition, lease: Lease, *, retry_s: float) -> bool:
    """Give a run back to the head of its lane; return False if it was not held any more.

    Raises:
        ServerUnavailableError: The server stayed away for `retry_s` seconds.
    """
    code, *_ = await partition.transition(
        "hand_back",
        lease.fence,
        lease.run_id,
        lease.session_id,
        lease.branch_id,
        lease.fence,
        retry_s=retry_s,
    )
    return bool(code == b"OK")
