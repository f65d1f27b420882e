"""What the branches of a file that is read have in common: its records to be, and its names."""

from runlane.journal.transfer.ancestry import Ancestry, NamesOnPaths
from runlane.journal.transfer.imported import ImportedRecord
from runlane.journal.transfer.names import derived_uuid, is_uuid, run_id_of
from runlane.journal.wire.records import AnyBody


class Gathering:
    """The import so far.

    Attributes:
        entries: Its records.
        runs: Runs that began.
        closed_runs: Runs that the import ended.
        renamed_runs: Runs that began and have another id here.
        left_out: Parts of messages that were left out.
    """

    def __init__(self, ancestry: Ancestry) -> None:
        self.entries: list[ImportedRecord] = []
        self.runs = 0
        self.closed_runs = 0
        self.renamed_runs = 0
        self.left_out = 0
        self._used: set[str] = set()
        self._runs = NamesOnPaths(ancestry)
        self._run_ids: dict[tuple[str, int], str] = {}
        self._compactions = NamesOnPaths(ancestry)

    def append(self, branch_id: str, parent: int | None, body: AnyBody) -> int:
        """Append a record; return its place."""
        self.entries.append(ImportedRecord(branch_id, parent, body))
        return len(self.entries) - 1

    def begin_run(self, file_id: str, node: int) -> str:
        """Note that a run begins; return its id here, which no other run of the import has.

        A file may use an id again on another branch or behind a checkpoint, or one that is none
        here.
        """
        plain = run_id_of(file_id)
        run_id = run_id_of(derived_uuid(file_id, str(node))) if plain in self._used else plain
        self.know_run(file_id, node, run_id)
        self.runs += 1
        self.renamed_runs += run_id != plain or not (plain == file_id or is_uuid(file_id))
        return run_id

    def know_run(self, file_id: str, node: int, run_id: str) -> None:
        """Note that a run is known from a node on."""
        self._used.add(run_id)
        self._runs.add(file_id, node)
        self._run_ids[file_id, node] = run_id

    def find_run(self, file_id: str, head: int, since: int) -> str | None:
        """Return the id here of a run on the path from `since` to `head`."""
        node = self._runs.find(file_id, head, since)
        return None if node is None else self._run_ids[file_id, node]

    def compact(self, operation_id: str, node: int, since: int) -> bool:
        """Note a compaction; return whether none of that id lies on the path to it."""
        fresh = self._compactions.find(operation_id, node, since) is None
        self._compactions.add(operation_id, node)
        return fresh
