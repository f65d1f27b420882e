"""The path to a record: what leads to it along parent ids, from the last checkpoint on."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from runlane.journal.archive.segment import Entry
from runlane.journal.errors import RecordMissingError
from runlane.journal.partition import Partition
from runlane.journal.projection import Projection
from runlane.journal.reader import PAGE, read_entries_back, record_of
from runlane.journal.wire.records import Record
from runlane.journal.wire.versions import plain_name

_WHOLE: Final = frozenset({"checkpoint", "compaction_applied", "history_imported"})
"""Kinds of records that stand for everything before them."""


class Path(Struct, frozen=True, kw_only=True):
    """What leads to a record.

    Attributes:
        records: Oldest first; the first one is a checkpoint or has no parent.
        distance: Records of the session, of whatever branch, since the checkpoint.
        size: Bytes of the records after the checkpoint, as they are stored.
        checkpoint_size: Bytes of the checkpoint; 0 if there is none.
    """

    records: list[Record]
    distance: int = 0
    size: int = 0
    checkpoint_size: int = 0

    def project(self) -> Projection:
        """Fold it.

        Raises:
            RecordOrderError: The journal is damaged.
        """
        return Projection(self.records)


async def read_path(
    partition: Partition, session_id: str, record_id: str, *, entries: Sequence[Entry] = ()
) -> Path:
    """Read the path to a record.

    Args:
        partition: Where the session lives.
        session_id: The session.
        record_id: The record; empty gives an empty path.
        entries: What was read already, from that record back, newest first.

    Raises:
        RecordMissingError: The journal lacks a record of the path.
        UndecodableError: A record is damaged or of a newer version.
        ArchiveError: Archived records cannot be read.
        ServerUnavailableError: The server is away.
    """
    found: list[Entry] = []
    wanted, page = record_id, entries
    while wanted:
        before = len(found)
        wanted = _follow(session_id, wanted, page, found)
        if wanted and len(found) == before and page is not entries:
            raise RecordMissingError(session_id, wanted)
        if wanted:
            page = await read_entries_back(
                partition, session_id, upto=_revision(wanted), count=PAGE
            )
    if not found:
        return Path(records=[])
    oldest = found[-1]
    whole = len(oldest.data) if _is_whole(oldest) else 0
    first = _revision(oldest.stream_id) - (0 if whole else 1)
    return Path(
        records=[record_of(entry) for entry in reversed(found)],
        distance=_revision(record_id) - first,
        size=sum(len(entry.data) for entry in found) - whole,
        checkpoint_size=whole,
    )


def _follow(session_id: str, wanted: str, page: Sequence[Entry], found: list[Entry]) -> str:
    """Add what a page has of the path; return the id that comes next, empty at its end."""
    for entry in page:
        missing = _revision(wanted) - _revision(entry.stream_id)
        if missing < 0:
            continue
        if missing or f"{entry.stream_id}.{entry.digest}" != wanted:
            raise RecordMissingError(session_id, wanted)
        found.append(entry)
        wanted = "" if _is_whole(entry) else entry.parent
        if not wanted:
            break
    return wanted


def _is_whole(entry: Entry) -> bool:
    return plain_name(entry.kind) in _WHOLE


def _revision(record_id: str) -> int:
    return int(record_id.partition("-")[0])
