"""What one attempt knows to be in the journal, and what of it a server has lost."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from runlane.journal.archive.segment import Entry
from runlane.journal.partition import Partition
from runlane.journal.reader import read_entries_back
from runlane.journal.transitions import Appended
from runlane.journal.wire.versions import plain_name

CHECKPOINTS: Final = frozenset({"checkpoint", "compaction_applied"})


class Loss(Struct, frozen=True, kw_only=True):
    """Records that were in the journal, and are not any more.

    Attributes:
        base: The record before them, which is still there; None if there is none, or none known.
        rooted: Whether they are known from the base, or else from the root of the branch, on.
        entries: The records, oldest first.
    """

    base: Entry | None
    rooted: bool
    entries: list[Entry]

    @property
    def base_id(self) -> str:
        """Record id of the base; empty if there is none."""
        return id_of(self.base) if self.base else ""


class Trail:
    """The newest records that lead to the head of a branch, as they are stored.

    A failover goes back to an earlier state of the server. So if one record is still there, all
    before it are, and the last one tells whether any was lost.

    Attributes:
        head: Record id of the last one; empty for an empty branch.
    """

    def __init__(self, branch_id: str, head: str, read: Sequence[Entry]) -> None:
        """Begin with what was read, oldest first, up to the head."""
        self.head = head
        self._branch_id = branch_id
        self._entries = list(read)

    def add(self, appended: Appended, *, base: str) -> None:
        """Go on from `base` with what was appended there; what came after it before is gone."""
        while self._entries and id_of(self._entries[-1]) != base:
            self._entries.pop()
        self.head = base
        records = [each for each in appended.written if each.kind]
        inc = appended.head.partition("-")[2].partition(".")[0]
        for number, record in enumerate(records, revision_of(appended.head) + 1 - len(records)):
            entry = Entry(
                stream_id=f"{number}-{inc}",
                branch=self._branch_id,
                parent=self.head,
                kind=record.kind,
                digest=record.digest,
                at_ms=0,
                data=record.data,
            )
            self._entries.append(entry)
            self.head = id_of(entry)
        if any(plain_name(record.kind) in CHECKPOINTS for record in records):
            self._forget()

    async def find_loss(self, partition: Partition, session_id: str) -> Loss | None:
        """Return what the journal has lost; None if that is nothing.

        Raises:
            ArchiveError: Archived records cannot be read.
            ServerUnavailableError: The server is away.
        """
        known = self._entries
        if not known or await _find(partition, session_id, id_of(known[-1])):
            return None
        first, last = 0, len(known) - 1
        while first < last:
            middle = (first + last) // 2
            if await _find(partition, session_id, id_of(known[middle])):
                first = middle + 1
            else:
                last = middle
        parent = known[first].parent
        base = await _find(partition, session_id, parent) if parent else None
        return Loss(base=base, rooted=base is not None or not parent, entries=known[first:])

    def _forget(self) -> None:
        """Keep what lies between the last two checkpoints and after them: no loss goes further."""
        kinds = [plain_name(entry.kind) for entry in self._entries]
        places = [place for place, kind in enumerate(kinds) if kind in CHECKPOINTS]
        del self._entries[: places[-2] if len(places) > 1 else 0]


def id_of(entry: Entry) -> str:
    """Return the record id of an entry."""
    return f"{entry.stream_id}.{entry.digest}"


def revision_of(record_id: str) -> int:
    """Return the number of a record in its session; 0 for no record."""
    return int(record_id.partition("-")[0] or 0)


async def _find(partition: Partition, session_id: str, record_id: str) -> Entry | None:
    entries = await read_entries_back(partition, session_id, upto=revision_of(record_id), count=1)
    return entries[0] if entries and id_of(entries[0]) == record_id else None
