"""What the tree of a session is to do, in plain Python: records linked to their parents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from runlane.journal.errors import (
    BranchExistsError,
    InvalidInputError,
    LaneBusyError,
    NotAncestorError,
    RetryRejectedError,
    RunlaneError,
    UnfinishedRunError,
    UnknownBranchError,
    UnknownRecordError,
    UnknownRunError,
)
from runlane.journal.wire.records import AnyBody, MessageAppended, RunFinished, RunStarted

Expected = type[RunlaneError] | None


@dataclass(frozen=True)
class Node:
    """One record that was acknowledged."""

    record_id: str
    branch: str
    parent: str
    body: AnyBody

    @property
    def revision(self) -> int:
        return int(self.record_id.partition("-")[0])


@dataclass
class OracleBranch:
    """A lane; `fence` is empty while nobody holds it."""

    head: str = ""
    active: str = ""
    fence: str = ""
    inbox: list[str] = field(default_factory=list[str])


@dataclass
class TreeOracle:
    """One session; each question is answered with the error to expect, or None."""

    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    branches: dict[str, OracleBranch] = field(default_factory=lambda: {"main": OracleBranch()})

    def path(self, record_id: str) -> list[Node]:
        """Return what leads to a record, from the root on."""
        nodes: list[Node] = []
        while record_id:
            nodes.append(self.nodes[record_id])
            record_id = nodes[-1].parent
        return nodes[::-1]

    def open_run(self, record_id: str) -> str:
        run = ""
        for node in self.path(record_id):
            if isinstance(node.body, RunStarted):
                run = node.body.run_id
            elif isinstance(node.body, RunFinished):
                run = ""
        return run

    def before_open_run(self, record_id: str) -> str:
        """Return the last record at which no run is open."""
        while self.open_run(record_id):
            record_id = self.nodes[record_id].parent
        return record_id

    def texts(self, record_id: str) -> list[str | None]:
        """Return the transcript as of a record: what was asked and what was said."""
        bodies = [node.body for node in self.path(record_id)]
        spoken = [body for body in bodies if isinstance(body, RunStarted | MessageAppended)]
        return [body.message.content for body in spoken]

    def begin_of(self, run_id: str) -> Node | None:
        begun = (
            node
            for node in self.nodes.values()
            if isinstance(node.body, RunStarted) and node.body.run_id == run_id
        )
        return next(begun, None)

    def forked(self, source: str, record_id: str | None, name: str) -> tuple[Expected, str]:
        """Return the error of a fork, and its base."""
        if source not in self.branches:
            return UnknownBranchError, ""
        head = self.branches[source].head
        base = head if record_id is None else record_id
        if record_id is not None:
            if record_id not in self.nodes:
                return UnknownRecordError, ""
            if record_id not in {node.record_id for node in self.path(head)}:
                return NotAncestorError, ""
            if self.open_run(base):
                return UnfinishedRunError, ""
        if name in self.branches:
            return BranchExistsError, ""
        return None, self.before_open_run(base)

    def retried(self, run_id: str, known: bool, name: str) -> tuple[Expected, str]:
        begin = self.begin_of(run_id)
        if begin is None:
            return (RetryRejectedError if known else UnknownRunError), ""
        if name in self.branches:
            return BranchExistsError, ""
        return None, begin.parent

    def promoted(self, source: str) -> Expected:
        if source == "main":
            return InvalidInputError
        if source not in self.branches:
            return UnknownBranchError
        if self.open_run(self.branches[source].head):
            return UnfinishedRunError
        return LaneBusyError if self.branches["main"].active else None

    def add(self, branch: str, ids: Sequence[str], bodies: Sequence[AnyBody], parent: str) -> None:
        """Note records that were acknowledged, oldest first; the first one's parent is given."""
        for record_id, body in zip(ids, bodies, strict=True):
            self.nodes[record_id] = Node(record_id, branch, parent, body)
            parent = record_id
        self.branches.setdefault(branch, OracleBranch()).head = parent

    def in_order(self) -> Iterator[Node]:
        return iter(sorted(self.nodes.values(), key=lambda node: node.revision))
