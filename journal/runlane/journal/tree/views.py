"""Look at the tree of a session: its branches, and what any record stands for."""

from msgspec import Struct

from runlane.journal.errors import (
    NotAncestorError,
    UnknownBranchError,
    UnknownRecordError,
    UnknownSessionError,
)
from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.partition import Partition
from runlane.journal.path import read_path
from runlane.journal.reader import read_record
from runlane.journal.tree.vanishing import unless_gone
from runlane.journal.wire.codec import decode_jump
from runlane.journal.wire.messages import ContextMessage
from runlane.journal.wire.records import CONTROL_BRANCH, Record
from runlane.journal.wire.tree import BranchIntent, Jump, LastRun


class BranchInfo(Struct, frozen=True, kw_only=True):
    """One branch of a session.

    Attributes:
        branch_id: The branch.
        head_id: Record id of its last record; None if it has none.
        intent: Why it was made; None for `main`.
        base_id: Record id that it began at; None for an empty beginning.
        source_branch_id: The branch that the base was looked up on; None for `main`.
        retried_run_id: The run whose task is to be given again; for a retry only.
        created_revision: The number of the record that made it; 0 for `main`.
    """

    branch_id: str
    head_id: str | None
    intent: BranchIntent | None = None
    base_id: str | None = None
    source_branch_id: str | None = None
    retried_run_id: str | None = None
    created_revision: int = 0


class SessionCheckout(Struct, frozen=True, kw_only=True):
    """A session as of one record.

    Attributes:
        session_id: The session.
        branch_id: The branch that was asked for.
        record_id: The record; None for an empty branch.
        messages: The transcript up to there, as a model reads it, oldest first.
        open_run: The run that had begun and not ended; None if there was none.
        last_run: The run that had ended last.
    """

    session_id: str
    branch_id: str
    record_id: str | None
    messages: list[ContextMessage]
    open_run: str | None
    last_run: LastRun | None


async def read_head(partition: Partition, session_id: str, branch_id: str) -> str:
    """Return the record id of a branch's last record; empty if it has none.

    Raises:
        UnknownSessionError: There is no such session.
        UnknownBranchError: It has no such branch.
        ServerUnavailableError: The server is away.
    """
    heads = await _heads(partition, session_id)
    if branch_id not in heads and (branch_id != MAIN_BRANCH):
        raise UnknownBranchError(session_id, branch_id, known=tuple(heads))
    return heads.get(branch_id, "")


async def list_branches(partition: Partition, session_id: str) -> list[BranchInfo]:
    """Return all branches, in the order in which they were made.

    Raises:
        UnknownSessionError: There is no such session.
        ServerUnavailableError: The server is away.
    """
    heads = await _heads(partition, session_id)
    jumps = await _read_jumps(partition, session_id)
    branches = [BranchInfo(branch_id=MAIN_BRANCH, head_id=heads.get(MAIN_BRANCH))]
    for revision, jump in jumps:
        if jump.intent is not None:
            branches.append(
                BranchInfo(
                    branch_id=jump.branch_id,
                    head_id=heads.get(jump.branch_id),
                    intent=jump.intent,
                    base_id=jump.base_id or None,
                    source_branch_id=jump.source_branch_id,
                    retried_run_id=jump.retried_run_id,
                    created_revision=revision,
                )
            )
    return branches


async def check_out(
    partition: Partition, session_id: str, branch_id: str, record_id: str | None = None
) -> SessionCheckout:
    """Return a session as of a record of any branch, or of the head of one.

    Raises:
        UnknownSessionError: There is no such session.
        UnknownBranchError: It has no such branch.
        UnknownRecordError: No branch has such a record.
        SessionClosedError: The session is being deleted.
        RecordMissingError: The journal lacks a record that it leads to.
        UndecodableError: The journal is damaged or of a newer version.
        ArchiveError: Archived records cannot be read.
        ServerUnavailableError: The server is away.
    """
    async with unless_gone(partition, session_id):
        head = await read_head(partition, session_id, branch_id)
        if record_id is not None:
            head = (await find_record(partition, session_id, record_id)).record_id
        projection = (await read_path(partition, session_id, head)).project()
    return SessionCheckout(
        session_id=session_id,
        branch_id=branch_id,
        record_id=head or None,
        messages=projection.messages,
        open_run=projection.open_run.run_id if projection.open_run else None,
        last_run=projection.last_run,
    )


async def check_ancestor(
    partition: Partition, session_id: str, record_id: str, branch_id: str, head: str
) -> None:
    """Refuse a record that does not lead to the head of a branch.

    Raises:
        UnknownRecordError: The session has no such record.
        NotAncestorError: It leads elsewhere.
        ServerUnavailableError: The server is away.
    """
    record = await find_record(partition, session_id, record_id)
    jumps = await _read_jumps(partition, session_id)
    branch, last = branch_id, head
    while last:
        jump = next(
            (
                (revision, jump)
                for revision, jump in reversed(jumps)
                if jump.branch_id == branch and revision <= _revision(last)
            ),
            None,
        )
        first = jump[0] if jump else 1
        if record.branch_id == branch and first <= record.revision <= _revision(last):
            return
        if jump is None:
            break
        branch, last = jump[1].base_branch_id, jump[1].base_id
    raise NotAncestorError(session_id=session_id, branch_id=branch_id, record_id=record_id)


async def find_record(partition: Partition, session_id: str, record_id: str) -> Record:
    """Return a record of any branch.

    Raises:
        UnknownRecordError: No branch has such a record.
        UndecodableError: It is damaged or of a newer version.
        ArchiveError: It is archived and cannot be read.
        ServerUnavailableError: The server is away.
    """
    record = await read_record(partition, session_id, record_id)
    control = record is not None and record.branch_id == CONTROL_BRANCH
    if record is None or control:
        raise UnknownRecordError(session_id, record_id, control=control)
    return record


async def _heads(partition: Partition, session_id: str) -> dict[str, str]:
    keys = partition.keys
    if not await partition.call("HEXISTS", keys.session(session_id), "rev"):
        raise UnknownSessionError(session_id)
    words: list[bytes] = await partition.call("HGETALL", keys.heads(session_id))
    return {
        branch.decode(): head.decode()
        for branch, head in zip(words[::2], words[1::2], strict=True)
        if branch.decode() != CONTROL_BRANCH
    }


async def _read_jumps(partition: Partition, session_id: str) -> list[tuple[int, Jump]]:
    """Return revision and jump, oldest first."""
    words: list[bytes] = await partition.call("HGETALL", partition.keys.jumps(session_id))
    jumps = [
        (_revision(record_id.decode()), decode_jump(jump))
        for record_id, jump in zip(words[::2], words[1::2], strict=True)
    ]
    return sorted(jumps, key=lambda pair: pair[0])


def _revision(record_id: str) -> int:
    return int(record_id.partition("-")[0])
