"""Reads EJAgent's JSONL journals, line by line, by all the rules of EJAgent's own reader."""

from collections.abc import Iterable

import msgspec

from runlane.journal.errors import JournalFormatError
from runlane.journal.transfer.ancestry import Ancestry
from runlane.journal.transfer.breach import BreachError
from runlane.journal.transfer.ejagent_lines import (
    BranchCreatedData,
    CheckpointData,
    Data,
    Line,
    parse_line,
)
from runlane.journal.transfer.file_branch import FileBranch, Point
from runlane.journal.transfer.file_tree import FileTree, Place
from runlane.journal.transfer.gathering import Gathering
from runlane.journal.transfer.imported import ImportedJournal, ImportReport
from runlane.journal.transfer.names import branch_id_of, run_id_of
from runlane.journal.wire.tree import BranchCreated, BranchIntent


def read_jsonl(lines: Iterable[bytes], *, session_id: str | None = None) -> ImportedJournal:
    """Read a journal of EJAgent Core 0.6 or SimAgentPlg 0.5.

    The whole file is checked before anything is returned. A last line without its newline was
    never finished and is left out.

    Args:
        lines: A file opened for bytes, or its lines.
        session_id: The session that the file must be of; None takes the one that it names.

    Raises:
        JournalFormatError: The file breaks a rule of its format, or says what no journal here can.
    """
    reader = _Reader(session_id and session_id.strip())
    number, torn = 0, False
    for number, raw in enumerate(lines, 1):
        if torn:
            raise JournalFormatError("the line has no end", line=number - 1)
        torn = not raw.endswith(b"\n")
        try:
            if b"\r" in raw.removesuffix(b"\n").removesuffix(b"\r"):
                raise BreachError("a carriage return stands within the line")
            if not torn:
                reader.add(*parse_line(raw))
        except (BreachError, msgspec.MsgspecError, RecursionError) as error:
            raise JournalFormatError(str(error), line=number) from error
    if number - torn == 0:
        raise JournalFormatError("the file has no complete record", line=1)
    return reader.finish(torn=torn)


class _Reader:
    def __init__(self, session_id: str | None) -> None:
        ancestry = Ancestry()
        self._tree = FileTree(session_id, ancestry)
        self._gathering = Gathering(ancestry)
        self._points: list[Point] = []
        self._branches: dict[str, FileBranch] = {}
        self._agent_id: str | None = None

    def add(self, line: Line, data: Data) -> None:
        """Take the next line.

        Raises:
            BreachError: It may not follow.
            msgspec.ValidationError: The document in it is none.
        """
        place = self._tree.place(line, data)
        branch = self._branches.get(line.branch_id)
        if branch is None:
            branch = self._begin_branch(line, place)
        self._check_agent(line, data)
        branch.bind(line.agent_id)
        if isinstance(data, BranchCreatedData):
            branch.emit(self._branch_created(data, place))
        else:
            branch.apply(line, data, place.node)
        self._points.append(branch.point)

    def finish(self, *, torn: bool) -> ImportedJournal:
        """Close what the file left open; return what it comes to."""
        for branch in self._branches.values():
            branch.close()
        gathering = self._gathering
        assert self._tree.session_id is not None
        return ImportedJournal(
            session_id=self._tree.session_id,
            agent_id=self._agent_id,
            entries=tuple(gathering.entries),
            report=ImportReport(
                lines=len(self._points),
                branches=len(self._branches),
                runs=gathering.runs,
                closed_runs=gathering.closed_runs,
                renamed_runs=gathering.renamed_runs,
                torn=torn,
                left_out=gathering.left_out,
                renamed_branches={
                    file_name: branch.name
                    for file_name, branch in self._branches.items()
                    if file_name != branch.name
                },
            ),
        )

    def _begin_branch(self, line: Line, place: Place) -> FileBranch:
        base = Point() if place.base is None else self._points[place.base]
        if base.run_id is not None:
            raise BreachError(f"run {base.run_id!r} is unfinished at the base of the branch")
        branch = FileBranch(branch_id_of(line.branch_id), base, self._gathering)
        self._branches[line.branch_id] = branch
        return branch

    def _check_agent(self, line: Line, data: Data) -> None:
        if line.agent_id is None:
            if not isinstance(data, CheckpointData | BranchCreatedData):
                raise BreachError(f"a {line.type} record needs an agent_id")
            return
        agent_id = line.agent_id.strip()
        if self._agent_id not in (None, agent_id):
            raise BreachError(f"agent_id changes from {self._agent_id!r} to {agent_id!r}")
        self._agent_id = agent_id

    def _branch_created(self, data: BranchCreatedData, place: Place) -> BranchCreated:
        retried = data.retried_run_id
        if retried is not None and place.source is not None:
            since = self._points[place.source].since
            known = self._gathering.find_run(retried, place.source, since)
            retried = known or run_id_of(retried)
        return BranchCreated(
            intent=BranchIntent(data.intent),
            source_branch_id=self._branches[data.source_branch_id].name,
            retried_run_id=retried,
        )
