"""Move records of a session from the server to the archive, oldest first."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from runlane.journal.archive.segment import Entry
from runlane.journal.blobs import read_blob
from runlane.journal.errors import RecordMissingError, UndecodableError, UnknownBlobError
from runlane.journal.ownership import own_archive
from runlane.journal.partition import Partition
from runlane.journal.reader import PAGE, entry_of
from runlane.journal.transitions import archive_release, trim
from runlane.journal.transitions.archive_claim import ArchiveClaim
from runlane.journal.transitions.entries import blobs_of
from runlane.journal.wire.codec import decode_body

SEGMENT_RECORDS: Final = 2000
SEGMENT_BYTES: Final = 8 * 1024 * 1024


class Batch(Struct, frozen=True):
    """Records of a stream that may go to the archive at once.

    Attributes:
        entries: Oldest first, without a gap; at least one.
        blobs: Revision and digest, for each blob that each of them names.
    """

    entries: list[Entry]
    blobs: list[tuple[int, str]]

    @property
    def last(self) -> int:
        """The last revision."""
        return self.entries[-1].revision


async def archive_session(
    partition: Partition, claim: ArchiveClaim, *, segment_records: int = SEGMENT_RECORDS
) -> int:
    """Archive what a claimed session may give, drop it from the stream, and give the session back.

    It may be stopped at any point: whoever claims the session next goes on.

    Args:
        partition: Where the session lives; with an archive.
        claim: The session.
        segment_records: At most this many records go into a segment.

    Returns:
        How many records were archived.

    Raises:
        ArchiverFencedError: Another archiver has the session, or it is being deleted.
        RecordMissingError: The stream lacks a record that is not archived.
        ArchiveMismatchError: The archive is not this deployment's.
        ArchiveError: The archive cannot be used.
        ServerUnavailableError: The server is away.
    """
    archive = await own_archive(partition)
    await archive.sweep(claim.session_id, claim.segment)
    step = claim
    while step.trimmed < step.upto:
        batch = await read_batch(partition, step, count=segment_records)
        step = await drop_batch(partition, await store_batch(partition, step, batch), batch)
        if step.trimmed < batch.last:
            break  # a lane woke up, and keeps the rest
    await archive_release(partition, claim)
    return step.archived - claim.archived


async def read_batch(partition: Partition, claim: ArchiveClaim, *, count: int) -> Batch:
    """Return the next records of a session's stream: at most `count`, and what a segment holds.

    Raises:
        RecordMissingError: The stream does not have the first one.
        ServerUnavailableError: The server is away.
    """
    log, batch = partition.keys.log(claim.session_id), Batch([], [])
    after, room = claim.trimmed, SEGMENT_BYTES
    while after < claim.upto and len(batch.entries) < count:
        size = min(PAGE, count - len(batch.entries))
        page = await partition.call("XRANGE", log, after + 1, claim.upto, "COUNT", size)
        for entry in map(entry_of, page):
            room -= len(entry.data)
            if entry.revision != after + 1 or (batch.entries and room < 0):
                break
            after = entry.revision
            batch.entries.append(entry)
            batch.blobs.extend((after, digest) for digest in _blobs_of(entry))
        if len(page) < size or not batch.entries or batch.last < entry_of(page[-1]).revision:
            break
    if not batch.entries:
        raise RecordMissingError(claim.session_id, str(claim.trimmed + 1))
    return batch


async def store_batch(partition: Partition, claim: ArchiveClaim, batch: Batch) -> ArchiveClaim:
    """Write a segment of what is not archived yet, after the blobs that it names.

    Returns:
        The claim as it is then; the server does not know of it yet.

    Raises:
        ArchiveError: The archive cannot be used.
        ServerUnavailableError: The server is away.
    """
    archive, session_id = partition.archive, claim.session_id
    assert archive is not None
    new = [entry for entry in batch.entries if entry.revision > claim.archived]
    if not new:
        return claim
    for digest in {digest for revision, digest in batch.blobs if revision > claim.archived}:
        try:
            content = await read_blob(partition, session_id, digest)
        except UnknownBlobError:
            continue  # nobody has it: the record goes all the same
        await archive.put_blob(session_id, digest, content)
    segment = await archive.write(session_id, new, previous=claim.segment)
    return replace(claim, archived=new[-1].revision, segment=segment)


async def drop_batch(partition: Partition, claim: ArchiveClaim, batch: Batch) -> ArchiveClaim:
    """Note what is archived, and drop as many of those records as no lane needs in the stream.

    Returns:
        The claim as the server knows it.

    Raises:
        ArchiverFencedError: Another archiver has the session, or it is being deleted.
        ServerUnavailableError: The server is away.
    """
    upto = batch.last
    while True:
        dropped = [digest for revision, digest in batch.blobs if revision <= upto]
        first_kept = await trim(partition, claim, upto=upto, blobs=dropped)
        if first_kept is None:
            return replace(claim, trimmed=upto)
        upto = max(first_kept - 1, claim.trimmed)


def _blobs_of(entry: Entry) -> list[str]:
    try:
        return blobs_of(decode_body(entry.kind, entry.data)).split()
    except UndecodableError:
        return []  # damaged, or a newer runlane's: it is archived as it is
