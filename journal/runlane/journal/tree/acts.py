"""Begin branches: fork, rollback, retry; and let `main` follow one."""

import os

from msgspec import Struct
from msgspec.structs import replace

from runlane.journal.errors import (
    InvalidInputError,
    RetryRejectedError,
    UnfinishedRunError,
    UnknownRunError,
)
from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.partition import Partition
from runlane.journal.path import read_path
from runlane.journal.projection import Projection
from runlane.journal.transitions import create_branch, promote
from runlane.journal.tree.vanishing import unless_gone
from runlane.journal.tree.views import check_ancestor, find_record, read_head
from runlane.journal.wire.records import Record, RunContinued, RunStarted
from runlane.journal.wire.tree import BranchIntent, Jump


class SessionRetry(Struct, frozen=True, kw_only=True):
    """A branch on which a run's task can be given again; nothing was executed.

    Attributes:
        branch_id: The new branch, as of before the run.
        task: What the run was asked.
        retried_run_id: The run.
    """

    branch_id: str
    task: str
    retried_run_id: str


async def fork(
    partition: Partition,
    session_id: str,
    source: str,
    *,
    intent: BranchIntent = BranchIntent.FORK,
    record_id: str | None = None,
    name: str | None = None,
) -> str:
    """Begin a branch at a record of another one; return its name.

    Args:
        partition: Where the session lives.
        session_id: The session.
        source: The branch whose head the record leads to.
        intent: Why.
        record_id: Where; None for the head or, while a run is open there, for the record before it.
        name: Of the new branch; None makes one up.

    Raises:
        UnknownSessionError: There is no such session.
        UnknownBranchError: It has no such branch.
        UnknownRecordError: It has no such record.
        NotAncestorError: The record does not lead to the head of the source.
        UnfinishedRunError: A run is open at the record.
        BranchExistsError: The name is taken.
        SessionClosedError: The session is being deleted or imported.
        RecordMissingError: The journal lacks a record that it leads to.
        UndecodableError: The journal is damaged or of a newer version.
        ArchiveError: Archived records cannot be read.
        ServerUnavailableError: The server is away.
    """
    async with unless_gone(partition, session_id):
        base = await read_head(partition, session_id, source)
        if record_id is not None:
            await check_ancestor(partition, session_id, record_id, source, base)
            base = record_id
        base, projection = await _finished(partition, session_id, base, exact=record_id is not None)
        jump = await _jump(partition, session_id, base, source, intent, name)
    await create_branch(partition, session_id, jump, last_run=projection.last_run)
    return jump.branch_id


async def prepare_retry(
    partition: Partition,
    session_id: str,
    run_id: str,
    *,
    branch_id: str = MAIN_BRANCH,
    name: str | None = None,
) -> SessionRetry:
    """Begin a branch as of before a run, and return the run's task; nothing is executed.

    Args:
        partition: Where the session lives.
        session_id: The session.
        run_id: The run; it began with a task.
        branch_id: A branch that it lies on, for a run that is not known by its id any more.
        name: Of the new branch; None makes one up.

    Raises:
        UnknownSessionError: There is no such session.
        UnknownBranchError: It has no such branch.
        UnknownRunError: The branch has no such run, or the run is of another session.
        RetryRejectedError: The run has not begun, or continued another one.
        BranchExistsError: The name is taken.
        SessionClosedError: The session is being deleted or imported.
        RecordMissingError: The journal lacks a record before the run.
        UndecodableError: The journal is damaged or of a newer version.
        ArchiveError: Archived records cannot be read.
        ServerUnavailableError: The server is away.
    """
    async with unless_gone(partition, session_id):
        begin = await _begin_of(partition, session_id, run_id, branch_id)
        if not isinstance(begin.body, RunStarted):
            raise RetryRejectedError(
                session_id=session_id,
                run_id=run_id,
                reason="it continued another run, without a task",
            )
        base = begin.parent_id
        _, projection = await _finished(partition, session_id, base, exact=True)
        jump = await _jump(partition, session_id, base, begin.branch_id, BranchIntent.RETRY, name)
    jump = replace(jump, retried_run_id=run_id)
    await create_branch(partition, session_id, jump, last_run=projection.last_run)
    return SessionRetry(
        branch_id=jump.branch_id, task=begin.body.message.content, retried_run_id=run_id
    )


async def follow(partition: Partition, session_id: str, source: str) -> str:
    """Let `main` go on from the head of another branch; return the record id of its new head.

    Raises:
        UnknownSessionError: There is no such session.
        InvalidInputError: The branch is `main`.
        UnknownBranchError: It has no such branch.
        LaneBusyError: A run is active in `main`, or it is held.
        UnfinishedRunError: A run is open on the branch.
        SessionConflictError: `main` moved meanwhile.
        SessionClosedError: The session is being deleted or imported.
        RecordMissingError: The journal lacks a record of the branch.
        UndecodableError: The journal is damaged or of a newer version.
        ArchiveError: Archived records cannot be read.
        ServerUnavailableError: The server is away.
    """
    if source == MAIN_BRANCH:
        raise InvalidInputError("main cannot follow itself; name the branch that it is to follow")
    async with unless_gone(partition, session_id):
        previous = await read_head(partition, session_id, MAIN_BRANCH)
        base = await read_head(partition, session_id, source)
        projection = (await read_path(partition, session_id, base)).project()
    run = projection.open_run
    if run is not None:
        raise UnfinishedRunError(
            session_id=session_id,
            record_id=base,
            run_id=run.run_id,
            advice=f"main can follow branch {source!r} once it has ended: wait for it, or abort it",
        )
    jump = Jump(
        branch_id=MAIN_BRANCH,
        base_id=base,
        base_branch_id=source,
        source_branch_id=source,
    )
    return await promote(partition, session_id, jump, head=previous, last_run=projection.last_run)


async def _jump(
    partition: Partition,
    session_id: str,
    base: str,
    source: str,
    intent: BranchIntent,
    name: str | None,
) -> Jump:
    base_branch = (await find_record(partition, session_id, base)).branch_id if base else ""
    return Jump(
        branch_id=name or f"{intent}-{os.urandom(6).hex()}",
        base_id=base,
        base_branch_id=base_branch,
        source_branch_id=source,
        intent=intent,
    )


async def _finished(
    partition: Partition, session_id: str, base: str, *, exact: bool
) -> tuple[str, Projection]:
    """Return a record at which no run is open: `base`, or else the one before its open run."""
    projection = (await read_path(partition, session_id, base)).project()
    run = projection.open_run
    if run is None:
        return base, projection
    if exact:
        raise UnfinishedRunError(session_id=session_id, record_id=base, run_id=run.run_id)
    return run.base_id, (await read_path(partition, session_id, run.base_id)).project()


async def _begin_of(partition: Partition, session_id: str, run_id: str, branch_id: str) -> Record:
    """Return the record with which a run began: by the run itself, or else along the branch."""
    session, begin = await partition.call("HMGET", partition.keys.run(run_id), "session", "begin")
    if session is not None and session.decode() == session_id:
        if begin is None:
            raise RetryRejectedError(
                session_id=session_id, run_id=run_id, reason="it has not begun"
            )
        return await find_record(partition, session_id, begin.decode())
    wanted = await read_head(partition, session_id, branch_id)
    while wanted:
        path = await read_path(partition, session_id, wanted)
        for record in path.records:
            body = record.body
            if isinstance(body, RunStarted | RunContinued) and body.run_id == run_id:
                return record
        wanted = path.records[0].parent_id
    place = f"on branch {branch_id!r} of session {session_id!r}; "
    raise UnknownRunError(
        run_id,
        place=f"{place}check the id, or name the branch that it lies on"
        if session is None
        else f"{place}it is one of session {session.decode()!r}",
    )
