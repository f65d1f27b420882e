"""Archived records leave the stream."""

from collections.abc import Sequence

from runlane.journal.errors import ArchiveError, ArchiverFencedError
from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition
from runlane.journal.transitions.archive_claim import ArchiveClaim


async def trim(
    partition: Partition, claim: ArchiveClaim, *, upto: int, blobs: Sequence[str] = ()
) -> int | None:
    """Note how far a session is archived and drop records from its stream.

    Args:
        partition: Where the session lives.
        claim: Proof that the caller may; up to where the archive has its records, on disk, and
            the segment that ends there.
        upto: Up to this revision the stream drops them.
        blobs: The digests that the dropped records name, once for each record that does.

    Returns:
        None if it was done; else the first revision that the stream has to keep, and nothing was
        noted or dropped.

    Raises:
        ArchiverFencedError: Another archiver has the session, or it is being deleted.
        ArchiveError: The segment does not follow what is archived.
        ServerUnavailableError: The server is away.
    """
    code, *rest = await partition.transition(
        "trim",
        new_request_id(),
        claim.session_id,
        claim.token,
        claim.archived,
        claim.segment or "",
        upto,
        partition.cold_ms,
        claim.lease_ms,
        *blobs,
    )
    if code == b"FENCED":
        raise ArchiverFencedError(session_id=claim.session_id, token_held=rest[0].decode())
    if code == b"UNARCHIVED":
        raise ArchiveError(
            f"session {claim.session_id!r} is archived up to revision {rest[0]}: {claim.segment} "
            f"cannot follow, and records up to {upto} cannot be dropped; nothing was"
        )
    return int(rest[0]) if code == b"HEAD" else None
