"""An archiver has done what there was to do for a session."""

from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition
from runlane.journal.transitions.archive_claim import ArchiveClaim


async def archive_release(partition: Partition, claim: ArchiveClaim) -> bool:
    """Give a session back; return False if it was not this archiver's any more.

    Raises:
        ServerUnavailableError: The server is away.
    """
    code, *_ = await partition.transition(
        "archive_release", new_request_id(), claim.session_id, claim.token, partition.cold_ms
    )
    return bool(code == b"OK")
