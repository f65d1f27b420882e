"""Which line of a journal of EJAgent may stand where: ids, revisions, branches and their bases."""

from dataclasses import dataclass

from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.transfer.ancestry import Ancestry
from runlane.journal.transfer.breach import BreachError
from runlane.journal.transfer.ejagent_lines import BranchCreatedData, Data, Line


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line stands.

    Attributes:
        node: Its number in the file, from 0.
        base: The number of the line that it goes on from; None for the first of a path.
        source: The head of the branch that a new branch is made from; else None.
    """

    node: int
    base: int | None
    source: int | None = None


class FileTree:
    """The records of a file so far: ids and heads, no contents.

    Attributes:
        session_id: The session that it is of; None before the first line, unless it was given.
    """

    def __init__(self, session_id: str | None, ancestry: Ancestry) -> None:
        self.session_id = session_id
        self._ancestry = ancestry
        self._heads: dict[str, int] = {}
        self._nodes: dict[str, int] = {}

    def place(self, line: Line, data: Data) -> Place:
        """Add a line and return where it stands.

        Raises:
            BreachError: It may not stand there.
        """
        self._check_session(line)
        if line.record_id in self._nodes:
            raise BreachError(f"record_id {line.record_id!r} is there twice")
        if line.revision != len(self._nodes) + 1:
            raise BreachError(f"revision {line.revision} follows {len(self._nodes)}")
        base = None if line.parent_id is None else self._nodes.get(line.parent_id)
        if line.parent_id is not None and base is None:
            raise BreachError(f"no earlier record has the id of the parent, {line.parent_id!r}")
        source = None
        if isinstance(data, BranchCreatedData):
            source = self._check_new_branch(line, data, base)
        else:
            self._check_goes_on(line, base)
        node = self._ancestry.add(base)
        self._nodes[line.record_id] = node
        self._heads[line.branch_id] = node
        return Place(node, base, source)

    def _check_session(self, line: Line) -> None:
        if self.session_id is None:
            self.session_id = line.session_id.strip()
        if line.session_id != self.session_id:
            raise BreachError(f"session_id is {line.session_id!r}, not {self.session_id!r}")

    def _check_goes_on(self, line: Line, base: int | None) -> None:
        head = self._heads.get(line.branch_id)
        if head is None and line.branch_id != MAIN_BRANCH:
            raise BreachError(f"branch {line.branch_id!r} was not created")
        if head is None and base is not None:
            raise BreachError("the first record of main has a parent")
        if head != base:
            raise BreachError(f"the parent is not the head of branch {line.branch_id!r}")

    def _check_new_branch(self, line: Line, data: BranchCreatedData, base: int | None) -> int:
        if line.branch_id == MAIN_BRANCH:
            raise BreachError("main is created explicitly")
        if line.branch_id in self._heads:
            raise BreachError(f"branch {line.branch_id!r} exists already")
        if line.parent_id != data.base_record_id:
            raise BreachError("base_record_id is not the parent")
        source = self._heads.get(data.source_branch_id)
        if source is None:
            raise BreachError(f"there is no source branch {data.source_branch_id!r}")
        if self._nodes.get(data.source_head_id) != source:
            raise BreachError(
                f"source_head_id is not the head of branch {data.source_branch_id!r} at this record"
            )
        if base is not None and not self._ancestry.leads_to(base, source):
            raise BreachError(f"the base does not lie on branch {data.source_branch_id!r}")
        return source
