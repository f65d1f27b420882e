"""From the records of another system to what a journal here stores of them. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from runlane.journal.checkpoints import Growth
from runlane.journal.projection import Projection
from runlane.journal.transfer.imported import ImportedRecord
from runlane.journal.transitions.entries import as_stored
from runlane.journal.transitions.import_records import StagedRecord
from runlane.journal.wire.codec import chain_hash, encode, encode_body
from runlane.journal.wire.records import AnyBody, RunFinished
from runlane.journal.wire.tree import (
    BranchCreated,
    Checkpoint,
    CompactionApplied,
    HistoryImported,
    LastRun,
)


class PlannedBranch(Struct, frozen=True, kw_only=True):
    """A branch as it is to be.

    Attributes:
        branch_id: Its name.
        head: The place of its last record.
        last_run: The run that ended last on the way to the head.
        checkpoint: The place of the checkpoint that stands for it; None without one.
        created: The place of its `branch_created`; None for `main`.
        created_body: The content of that record.
    """

    branch_id: str
    head: int
    last_run: LastRun | None
    checkpoint: int | None = None
    created: int | None = None
    created_body: BranchCreated | None = None


class ImportPlan(Struct, frozen=True):
    """A session as it is to be stored.

    Attributes:
        records: Parents first; a parent is named by its place among them.
        branches: All of them.
    """

    records: tuple[StagedRecord, ...]
    branches: tuple[PlannedBranch, ...]


@dataclass(slots=True)
class _Branch:
    """A branch as far as it was followed.

    Attributes:
        projection: What its records come to.
        whole: The place of the record that stands for all before it; None if none does.
        checkpoint: The place of the branch's own last checkpoint; None without one.
        growth: Bytes since then.
    """

    projection: Projection = field(default_factory=Projection)
    whole: int | None = None
    checkpoint: int | None = None
    growth: Growth = field(default_factory=Growth)
    created: int | None = None
    created_body: BranchCreated | None = None

    def add(self, place: int, body: AnyBody, size: int) -> None:
        self.projection.add(body)
        if isinstance(body, HistoryImported | CompactionApplied):
            self.whole = place
            self.growth.restart(size)
            if isinstance(body, CompactionApplied):
                self.checkpoint = place
        else:
            self.growth.add(distance=0, size=size)

    def copy(self) -> "_Branch":
        """Return what a further branch begins with here."""
        return _Branch(self.projection.after(()), self.whole, growth=copy(self.growth))

    def checkpoint_at(self, head: int) -> Checkpoint | None:
        """Return what may stand for the branch, if a checkout of its head would be long."""
        self.growth.distance = head - (-1 if self.whole is None else self.whole)
        return self.projection.checkpoint() if self.growth.due else None


def plan_import(entries: Sequence[ImportedRecord]) -> ImportPlan:
    """Return what is to be stored, with a checkpoint at the end of each long branch.

    Args:
        entries: Parents first.

    Raises:
        RecordOrderError: A record does not fit the run that it belongs to.
        InvalidInputError: A record cannot be stored.
    """
    planning = _Planning(entries)
    for entry in entries:
        planning.add(entry)
    return planning.plan()


class _Planning:
    """The plan so far. What a branch comes to is forgotten at its last record."""

    def __init__(self, entries: Sequence[ImportedRecord]) -> None:
        self._entries = entries
        self._records: list[StagedRecord] = []
        self._branches: dict[str, _Branch] = {}
        self._ended: list[PlannedBranch] = []
        self._checkpoints: list[tuple[int, bytes]] = []
        self._last = {entry.branch_id: place for place, entry in enumerate(entries)}
        self._bases = Counter(_bases(entries))
        self._states: dict[int, _Branch] = {}

    def add(self, entry: ImportedRecord) -> None:
        body = entry.body
        if isinstance(body, RunFinished) and entry.parent is not None:
            body = as_stored(body, [self._entries[entry.parent].body])
        branch = self._branches.get(entry.branch_id)
        if branch is None:
            branch = self._branches[entry.branch_id] = self._begin(len(self._records), entry)
        if isinstance(body, CompactionApplied):
            body = branch.projection.with_state(body)
        kind, data = encode_body(body)
        place = self._store(entry.branch_id, entry.parent, kind, data)
        branch.add(place, body, len(data))
        if place in self._bases:
            self._states[place] = branch.copy()
        if self._last[entry.branch_id] == place:
            self._end(entry.branch_id, place, self._branches.pop(entry.branch_id))

    def plan(self) -> ImportPlan:
        """Return it, with the checkpoints behind all other records."""
        for number, data in self._checkpoints:
            branch = self._ended[number]
            place = self._store(branch.branch_id, branch.head, "checkpoint", data)
            self._ended[number] = replace(branch, head=place, checkpoint=place)
        return ImportPlan(tuple(self._records), tuple(self._ended))

    def _store(self, branch_id: str, parent: int | None, kind: str, data: bytes) -> int:
        before = "" if parent is None else self._records[parent].digest
        digest = chain_hash(before, branch_id, kind, data)
        self._records.append(StagedRecord(branch_id, parent, kind, digest, data))
        return len(self._records) - 1

    def _begin(self, place: int, entry: ImportedRecord) -> _Branch:
        branch = _Branch()
        if entry.parent is not None:
            branch = self._states[entry.parent].copy()
            self._bases[entry.parent] -= 1
            if not self._bases[entry.parent]:
                del self._states[entry.parent]
        if isinstance(entry.body, BranchCreated):
            branch.created, branch.created_body = place, entry.body
        return branch

    def _end(self, branch_id: str, head: int, branch: _Branch) -> None:
        self._ended.append(
            PlannedBranch(
                branch_id=branch_id,
                head=head,
                last_run=branch.projection.last_run,
                checkpoint=branch.checkpoint,
                created=branch.created,
                created_body=branch.created_body,
            )
        )
        checkpoint = branch.checkpoint_at(head)
        if checkpoint is not None:
            self._checkpoints.append((len(self._ended) - 1, encode(checkpoint)))


def _bases(entries: Sequence[ImportedRecord]) -> Iterator[int]:
    """Yield the places at which branches begin, once for each branch."""
    known: set[str] = set()
    for entry in entries:
        if entry.branch_id not in known:
            known.add(entry.branch_id)
            if entry.parent is not None:
                yield entry.parent
