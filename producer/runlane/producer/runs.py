"""What the server knows of a run."""

import asyncio
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from runlane.journal.errors import ArchiveMissingError, RecordMissingError, UnknownRunError
from runlane.journal.partition import Partition
from runlane.journal.reader import read_record
from runlane.journal.transitions.register import WorkerInfo
from runlane.journal.wire.jobs import JobType
from runlane.journal.wire.records import RunFinished
from runlane.journal.wire.results import AgentRunResult, StopReason


class RunState(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    PENDING_VERSION = "pending_version"
    """Queued, and no live worker serves its agent, or the version that it names."""
    LEASED = "leased"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"

    @property
    def ended(self) -> bool:
        """Whether nothing comes after it."""
        return self in _ENDED


_ENDED: Final = frozenset(
    {RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED, RunState.REJECTED}
)


class RunPlace(Struct, frozen=True, kw_only=True):
    """Where a run lies; this never changes.

    Attributes:
        run_id: The run.
        session_id: Its session.
        branch_id: Its branch.
        queued_id: Record id of its acceptance: its events begin there.
    """

    run_id: str
    session_id: str
    branch_id: str
    queued_id: str


class RunInfo(Struct, frozen=True, kw_only=True):
    """A run as of now.

    Attributes:
        run_id: The run.
        session_id: Its session.
        branch_id: Its branch.
        agent: The agent that it asks for.
        version: The only version of the agent that may execute it; None for any.
        intent: What was asked for; a hold executes nothing, it keeps the lane to its holder.
        state: Where it stands.
        attempt: How often a worker has begun it.
        crashes: How many of those attempts ended with the death of the worker.
        worker: The worker that holds it; None if nobody does.
        stop_reason: Why it ended; None if it has not.
        submitted_ms: When it was accepted, in server ms since the epoch.
        started_ms: When a worker first began it; None if none has.
        finished_ms: When it ended; None if it has not.
        result: What it came to; None if it has not ended.
    """

    run_id: str
    session_id: str
    branch_id: str
    agent: str
    version: str | None
    intent: JobType | Literal["hold"]
    state: RunState
    submitted_ms: int
    attempt: int = 0
    crashes: int = 0
    worker: str | None = None
    stop_reason: StopReason | None = None
    started_ms: int | None = None
    finished_ms: int | None = None
    result: AgentRunResult | None = None


_PLAIN_FIELDS: Final = (
    *("agent", "intent", "state", "submitted_ms", "attempt", "crashes", "worker"),
    *("stop_reason", "started_ms", "finished_ms"),
)


async def read_place(partition: Partition, run_id: str) -> RunPlace:
    """Return where a run lies.

    Raises:
        UnknownRunError: No such run.
        ServerUnavailableError: The server is away.
    """
    session, branch, queued = await _read(partition, run_id, "session", "branch", "queued_id")
    return RunPlace(
        run_id=run_id,
        session_id=session.decode(),
        branch_id=branch.decode(),
        queued_id=queued.decode(),
    )


async def read_result(
    partition: Partition, run_id: str, *, retry_s: float | None = None
) -> AgentRunResult | None:
    """Return what a run came to; None if it has not ended.

    Args:
        partition: Where the run lies.
        run_id: The run.
        retry_s: How long to go on while the server is away; None for the setting.

    Raises:
        UnknownRunError: No such run.
        UndecodableError: The record of its end is damaged or lost.
        ArchiveError: That record is archived and cannot be read.
        ServerUnavailableError: The server is away.
    """
    session, end = await _read(partition, run_id, "session", "end", retry_s=retry_s)
    if not end:
        return None
    return await _result_at(partition, run_id, session.decode(), end.decode())


async def read_run(partition: Partition, run_id: str) -> RunInfo:
    """Return a run as of now.

    Raises:
        UnknownRunError: No such run.
        UndecodableError: The record of its end is damaged or lost.
        ArchiveError: That record is archived and cannot be read.
        ServerUnavailableError: The server is away.
    """
    session, branch, queue, end, *plain = await _read(
        partition, run_id, "session", "branch", "queue", "end", *_PLAIN_FIELDS
    )
    values: dict[str, Any] = {
        name: value.decode() for name, value in zip(_PLAIN_FIELDS, plain, strict=True) if value
    }
    version = queue.decode().partition("@")[2] or None
    if values["state"] == RunState.QUEUED and not await _is_served(
        partition, values["agent"], version
    ):
        values["state"] = RunState.PENDING_VERSION
    if end:
        values["result"] = await _result_at(partition, run_id, session.decode(), end.decode())
    place = {"run_id": run_id, "session_id": session.decode(), "branch_id": branch.decode()}
    return msgspec.convert({**place, "version": version, **values}, RunInfo, strict=False)


async def _result_at(
    partition: Partition, run_id: str, session_id: str, record_id: str
) -> AgentRunResult:
    try:
        record = await read_record(partition, session_id, record_id)
        if record is None or not isinstance(record.body, RunFinished):
            raise RecordMissingError(session_id, record_id)
    except (RecordMissingError, ArchiveMissingError):
        await _read(partition, run_id, "session")  # it may have been deleted meanwhile
        raise
    return record.body.result


async def _read(
    partition: Partition, run_id: str, *fields: str, retry_s: float | None = None
) -> list[bytes]:
    """Return fields of a run; the first is one that every run has."""
    values: list[bytes | None] = await partition.call(
        "HMGET", partition.keys.run(run_id), *fields, retry_s=retry_s
    )
    if values[0] is None:
        raise UnknownRunError(run_id)
    return [value or b"" for value in values]


async def _is_served(partition: Partition, agent: str, version: str | None) -> bool:
    """Return whether a live worker serves an agent, and this version of it if one is named."""
    seconds, micros = await partition.call("TIME")
    now_ms = int(seconds) * 1000 + int(micros) // 1000
    keys = partition.keys
    live: list[bytes] = await partition.call(
        "ZRANGE", keys.workers(), f"({now_ms}", "+inf", "BYSCORE"
    )
    infos: list[bytes | None] = await asyncio.gather(
        *(partition.call("HGET", keys.worker(worker.decode()), "info") for worker in live)
    )
    return any(_serves(info, agent, version) for info in infos if info)


def _serves(info: bytes, agent: str, version: str | None) -> bool:
    served = msgspec.json.decode(info, type=WorkerInfo).agents.get(agent)
    return served is not None and version in (None, served)
