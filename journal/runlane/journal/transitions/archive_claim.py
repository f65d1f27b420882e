"""A worker takes sessions of which records may go to the archive."""

from msgspec import Struct

from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition

ARCHIVE_LEASE_MS = 60_000
"""How long an archiver may be silent before another one may take its session."""


class ArchiveClaim(Struct, frozen=True, kw_only=True):
    """A session that is this worker's to archive.

    Attributes:
        session_id: The session.
        token: Proof of it, compared for equality by every script that notes what was archived.
        trimmed: Up to this revision the stream has dropped its records.
        archived: Up to this revision the archive has all records.
        segment: Name of its last segment; None for none yet.
        upto: Up to this revision records may go from the stream now.
        lease_ms: How long the worker may be silent.
    """

    session_id: str
    token: str
    trimmed: int
    archived: int
    segment: str | None
    upto: int
    lease_ms: int = ARCHIVE_LEASE_MS


async def archive_claim(
    partition: Partition, *, worker_id: str, count: int, lease_ms: int = ARCHIVE_LEASE_MS
) -> list[ArchiveClaim]:
    """Take sessions that are due; one of which nothing may go yet is put off.

    A reply that was lost is asked for again, and names the same sessions.

    Args:
        partition: Where the sessions live.
        worker_id: Who takes them.
        count: At most this many.
        lease_ms: How long they are this worker's.

    Raises:
        ServerUnavailableError: The server is away.
    """
    request_id = new_request_id()
    (claimed,) = await partition.transition(
        "archive_claim", request_id, worker_id, request_id, lease_ms, partition.cold_ms, count
    )
    return [
        ArchiveClaim(
            session_id=session.decode(),
            token=token.decode(),
            trimmed=trimmed,
            archived=archived,
            segment=segment.decode() or None,
            upto=upto,
            lease_ms=lease_ms,
        )
        for session, token, trimmed, archived, segment, upto in claimed
    ]
