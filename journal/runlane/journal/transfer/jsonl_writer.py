"""Writes our records as a JSONL journal that EJAgent Core 0.6 loads, branches and appends to."""

from collections.abc import Iterable
from typing import Final

from runlane.journal.errors import InvalidInputError
from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.projection import Projection
from runlane.journal.transfer.ancestry import Ancestry
from runlane.journal.transfer.branch_writer import BranchWriter, Words
from runlane.journal.transfer.ejagent_documents import canonical
from runlane.journal.transfer.names import derived_uuid
from runlane.journal.wire.records import CONTROL_BRANCH, Record
from runlane.journal.wire.tree import BranchCreated, BranchIntent, BranchPromoted

_EMPTY: Final = 0
"""The first line of each export, a checkpoint of an empty session: the base of empty branches."""


class JsonlWriter:
    """Turns the records of a session into lines, one record at a time.

    EJAgent has no word for attempts, starts of tools and queue records: they give no line. A
    branch of what a server had lost is a fork, a promotion is a checkpoint on `main`, and an end
    that EJAgent does not know is the nearest that it does, with ours in the error text. What we
    alone know of a message or an end stands under a key that EJAgent keeps from its models.
    """

    def __init__(self, session_id: str, agent_id: str) -> None:
        self._session_id = session_id
        self._agent_id = agent_id
        self._ancestry = Ancestry()
        self._line_ids: list[str] = []
        self._branch_of_line: list[str] = []
        self._last_line_of: dict[str, int] = {"": _EMPTY}
        self._heads: dict[str, int] = {}
        self._branches: dict[str, BranchWriter] = {}

    def lines(self, record: Record, followed: Iterable[Record] = ()) -> list[bytes]:
        """Return the lines that a record gives.

        Args:
            record: The next record of the session, by revision, from the first on.
            followed: For a `BranchPromoted`: the path to its parent, oldest first, from a
                checkpoint or the root.

        Raises:
            InvalidInputError: A record before this one was not given.
        """
        lines = [] if self._line_ids else [self._begin()]
        if record.branch_id == CONTROL_BRANCH:
            return lines
        self._check_given(record)
        match record.body:
            case BranchCreated():
                said = [self._create_branch(record, record.body)]
            case BranchPromoted():
                said = [self._promote(record.body, followed)]
            case body:
                said = list(self._branches[record.branch_id].say(body))
        for number, words in enumerate(said):
            lines.append(self._write(f"{record.record_id}/{number}", record.branch_id, words))
        self._last_line_of[record.record_id] = self._heads[record.branch_id]
        return lines

    def _begin(self) -> bytes:
        main = self._branches[MAIN_BRANCH] = BranchWriter(self._session_id, self._agent_id)
        return self._write("", MAIN_BRANCH, main.jump([], None))

    def _check_given(self, record: Record) -> None:
        created = isinstance(record.body, BranchCreated)
        if record.parent_id not in self._last_line_of or (
            record.branch_id not in self._branches and not created
        ):
            raise InvalidInputError(
                f"record {record.record_id} goes on from {record.parent_id or 'nothing'!r}, which "
                "was not given before it; give all records of the session, by revision"
            )

    def _create_branch(self, record: Record, body: BranchCreated) -> Words:
        base, source = self._last_line_of[record.parent_id], body.source_branch_id
        if not self._ancestry.leads_to(base, self._heads.get(source, _EMPTY)):
            source = self._branch_of_line[base]
        data = {
            "base_record_id": self._line_ids[base],
            "source_branch_id": source,
            "source_head_id": self._line_ids[self._heads[source]],
            "intent": "rollback" if body.intent is BranchIntent.ROLLBACK else "fork",
        }
        if body.intent is BranchIntent.RETRY and body.retried_run_id:
            data |= {"intent": "retry", "retried_run_id": body.retried_run_id}
        summary = self._branches[source].summary
        self._branches[record.branch_id] = BranchWriter(self._session_id, self._agent_id, summary)
        self._heads[record.branch_id] = base
        return Words("branch_created", data)

    def _promote(self, body: BranchPromoted, followed: Iterable[Record]) -> Words:
        projection = Projection(followed)
        summary = self._branches[body.source_branch_id].summary
        main = self._branches[MAIN_BRANCH]
        return main.jump(projection.messages, projection.last_run, summary)

    def _write(self, name: str, branch_id: str, words: Words) -> bytes:
        parent = self._heads.get(branch_id)
        line_id = derived_uuid(self._session_id, name)
        self._heads[branch_id] = self._ancestry.add(parent)
        self._line_ids.append(line_id)
        self._branch_of_line.append(branch_id)
        line = {
            "journal_schema_version": 1,
            "record_id": line_id,
            "parent_id": None if parent is None else self._line_ids[parent],
            "branch_id": branch_id,
            "revision": len(self._line_ids),
            "session_id": self._session_id,
            "agent_id": self._agent_id,
            "sequence": words.sequence,
            "type": words.kind,
            "data": words.data,
        }
        return f"{canonical(line)}\n".encode()
