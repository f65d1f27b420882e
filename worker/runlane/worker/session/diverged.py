"""What becomes of records that the server had acknowledged and lost in a failover.

While the run's fence is held they are appended again: the same bytes on top of the same history,
and so with the same hashes. Once somebody else may go on from the surviving head, they are kept
beside it, as a branch of their own. They never go unnoticed.
"""

from typing import Final

import structlog
from msgspec.structs import replace

from runlane.journal.archive.segment import Entry
from runlane.journal.errors import (
    BranchExistsError,
    SessionClosedError,
    SessionDivergedError,
    SessionFencedError,
)
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.path import read_path
from runlane.journal.transitions import checkout, keep_lost
from runlane.journal.transitions.entries import Written, blobs_of, chained, settled_of
from runlane.journal.wire.codec import decode_body
from runlane.journal.wire.records import AnyBody, RunFinished
from runlane.journal.wire.results import AgentRunResult, RunStatus, StopReason
from runlane.journal.wire.tree import BranchCreated, BranchIntent, Jump, LastRun
from runlane.journal.wire.versions import plain_name
from runlane.worker.session.trail import Loss, Trail, id_of

BRANCH_LENGTH_MAX: Final = 100
"""So much of the branch's name is in that of the lost one."""

_JUMPS: Final = frozenset({"branch_created", "branch_promoted"})

logger = structlog.get_logger(__name__)


async def lost_suffix(partition: Partition, lease: Lease, loss: Loss) -> list[Written] | None:
    """Return lost records as they are to be appended again; None if they cannot be.

    Raises:
        ServerUnavailableError: The server is away.
    """
    try:
        surviving = await checkout(partition, lease, page=1)
    except SessionFencedError:
        return None
    if not loss.rooted or surviving.head != loss.base_id:
        return None
    written = [_as_written(entry) for entry in loss.entries]
    for each in written:
        if await _lacks_blob(partition, lease.session_id, each):
            return None
    logger.warning(
        "suffix_appended_again",
        run_id=lease.run_id,
        session_id=lease.session_id,
        branch_id=lease.branch_id,
        records=len(written),
        surviving=surviving.head,
    )
    return written


async def keep_aside(
    partition: Partition, lease: Lease, agent: str, trail: Trail, loss: Loss
) -> SessionDivergedError | None:
    """Keep lost records as a branch; return what to raise, None if the session was deleted.

    Raises:
        UndecodableError: One of them is damaged.
        ArchiveError: Archived records cannot be read.
        ServerUnavailableError: The server is away.
    """
    heads = partition.keys.heads(lease.session_id)
    surviving: bytes | None = await partition.call("HGET", heads, lease.branch_id)
    branch_id = None
    if loss.rooted:
        try:
            branch_id = await _keep(partition, lease, agent, loss)
        except SessionClosedError as error:
            logger.info("records_of_a_closed_session", run_id=lease.run_id, error=str(error))
            return None
    return SessionDivergedError(
        session_id=lease.session_id,
        branch_id=lease.branch_id,
        last_known=trail.head,
        surviving=(surviving or b"").decode(),
        lost_branch=branch_id,
        why_not="more was lost than this worker knows",
    )


async def _keep(partition: Partition, lease: Lease, agent: str, loss: Loss) -> str:
    """Keep the records once, whoever finds out and how often; return the name of the branch."""
    inc = loss.entries[0].stream_id.partition("-")[2]
    branch_id = f"lost-{lease.branch_id[:BRANCH_LENGTH_MAX]}-{inc}"
    try:
        await _keep_as(branch_id, partition, lease, agent, loss)
    except BranchExistsError:  # another worker knew other records
        branch_id = f"{branch_id}-{loss.entries[-1].digest[:8]}"
        await _keep_as(branch_id, partition, lease, agent, loss)
    logger.error(
        "suffix_kept_aside",
        run_id=lease.run_id,
        session_id=lease.session_id,
        branch_id=lease.branch_id,
        lost_branch=branch_id,
        records=len(loss.entries),
    )
    return branch_id


async def _keep_as(
    branch_id: str, partition: Partition, lease: Lease, agent: str, loss: Loss
) -> None:
    jump = Jump(
        branch_id=branch_id,
        base_id=loss.base_id,
        base_branch_id=loss.base.branch if loss.base else "",
        source_branch_id=lease.branch_id,
        intent=BranchIntent.LOST,
    )
    written, last_run = await _branch_of(partition, lease.session_id, loss, jump)
    await keep_lost(
        partition,
        lease.session_id,
        jump,
        written,
        request_id=id_of(loss.entries[-1]),
        agent=agent,
        revision=loss.entries[0].revision,
        last_run=last_run,
    )


async def _branch_of(
    partition: Partition, session_id: str, loss: Loss, jump: Jump
) -> tuple[list[Written], LastRun | None]:
    """Return the records of the branch, and the run that ended last on it.

    A run that is open at the end goes on elsewhere: here it ends.
    """
    projection = (await read_path(partition, session_id, loss.base_id)).project()
    lost = [entry for entry in loss.entries if plain_name(entry.kind) not in _JUMPS]
    projection = projection.after(decode_body(entry.kind, entry.data) for entry in lost)
    ends: list[AnyBody] = []
    if (run := projection.open_run) is not None:
        result = AgentRunResult(
            status=RunStatus.FAILED,
            stop_reason=StopReason.WORKER_LOST,
            turns=run.turn,
            usage=run.usage,
            error="the server lost these records in a failover; the run went on without them",
        )
        ends = [RunFinished(run_id=run.run_id, branch_id=jump.branch_id, result=result)]
    created = BranchCreated(intent=BranchIntent.LOST, source_branch_id=jump.source_branch_id)
    written = chained(jump.branch_id, loss.base_id, [created, *map(_as_written, lost), *ends])
    return (
        [
            replace(each, blobs="") if await _lacks_blob(partition, session_id, each) else each
            for each in written
        ],
        projection.after(ends).last_run,
    )


def _as_written(entry: Entry) -> Written:
    body = decode_body(entry.kind, entry.data)
    return Written(entry.kind, entry.digest, entry.data, blobs_of(body), settled_of(body))


async def _lacks_blob(partition: Partition, session_id: str, record: Written) -> bool:
    """Return whether the server has lost content that a record names."""
    names = [partition.keys.blob(session_id, digest) for digest in record.blobs.split()]
    return bool(names) and await partition.call("EXISTS", *names) < len(names)
