"""Records of a session, and what they come to on each branch."""

from collections.abc import Iterable

from runlane.journal.projection import Projection
from runlane.journal.transfer.imported import ImportedJournal
from runlane.journal.transfer.jsonl_writer import JsonlWriter
from runlane.journal.wire.records import CONTROL_BRANCH, KIND_OF, AnyBody, Record
from runlane.journal.wire.tree import BranchPromoted


class Records:
    """A session in memory: its records by revision, its heads and paths."""

    def __init__(self) -> None:
        self.all: list[Record] = []
        self.heads: dict[str, Record] = {}
        self._by_id: dict[str, Record] = {}

    def add(self, branch_id: str, body: AnyBody, parent_id: str | None = None) -> Record:
        """Append a record, to the head of its branch unless `parent_id` says otherwise."""
        head = self.heads.get(branch_id)
        if parent_id is None:
            parent_id = head.record_id if head else ""
        revision = len(self.all) + 1
        record = Record(
            revision=revision,
            record_id=f"{revision}-1.{revision:024x}",
            parent_id=parent_id,
            branch_id=branch_id,
            kind=KIND_OF[type(body)],
            at_ms=0,
            body=body,
        )
        self.all.append(record)
        self.heads[branch_id] = self._by_id[record.record_id] = record
        return record

    def path(self, record_id: str) -> list[Record]:
        """Return the records that lead to one, oldest first."""
        found: list[Record] = []
        while record_id:
            found.append(self._by_id[record_id])
            record_id = found[-1].parent_id
        return found[::-1]

    def project(self, record_id: str) -> Projection:
        return Projection(self.path(record_id))

    def project_branch(self, branch_id: str) -> Projection:
        head = self.heads.get(branch_id)
        return self.project(head.record_id if head else "")

    @property
    def branches(self) -> list[str]:
        return [branch for branch in self.heads if branch != CONTROL_BRANCH]


def records_of(imported: ImportedJournal) -> Records:
    """Return the records that an import gives once they are appended."""
    records = Records()
    for entry in imported.entries:
        parent = "" if entry.parent is None else records.all[entry.parent].record_id
        records.add(entry.branch_id, entry.body, parent)
    return records


def write(records: Records, session_id: str = "s", agent_id: str = "a") -> list[bytes]:
    """Return the lines of an export."""
    writer = JsonlWriter(session_id, agent_id)
    return [line for record in records.all for line in _lines(writer, records, record)]


def _lines(writer: JsonlWriter, records: Records, record: Record) -> Iterable[bytes]:
    if isinstance(record.body, BranchPromoted):
        return writer.lines(record, records.path(record.parent_id))
    return writer.lines(record)
