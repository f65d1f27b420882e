"""nothing → queued."""

import hashlib

from msgspec import Struct

from runlane.journal.errors import (
    AgentMismatchError,
    ContinueRejectedError,
    FollowUpRejectedError,
    IdempotencyConflictError,
    PayloadTooLargeError,
    RunlaneError,
    SessionClosedError,
    UnknownAgentError,
    UnknownBranchError,
)
from runlane.journal.partition import Partition
from runlane.journal.wire.codec import encode, encode_body
from runlane.journal.wire.control import ContinueRejectedReason, ControlReceipt, ControlStatus
from runlane.journal.wire.jobs import AnyJob, FollowUpFailurePolicy, FollowUpJob, JobType, RunJob
from runlane.journal.wire.records import RunQueued
from runlane.journal.wire.results import CONTINUABLE

_CONTINUABLE = f" {' '.join(sorted(CONTINUABLE))} "


class Submitted(Struct, frozen=True):
    """An accepted job.

    Attributes:
        run_id: The run: an earlier one if the idempotency key was used before.
        queued_id: Record id of its acceptance: its events come from there on.
        created: False if this very request was accepted before.
    """

    run_id: str
    queued_id: str
    created: bool


async def submit(
    partition: Partition,
    job: AnyJob,
    *,
    payload_bytes_max: int,
    idempotency_key: str | None = None,
    idempotency_s: int = 604_800,
) -> Submitted:
    """Accept a job into its lane.

    Args:
        partition: Where the session lives.
        job: What is asked for.
        payload_bytes_max: The largest task, in bytes.
        idempotency_key: A later job of the session with the same key and body is this one.
        idempotency_s: How long the key is remembered, in seconds.

    Raises:
        PayloadTooLargeError: The task is over the limit.
        IdempotencyConflictError: The key was used with another body.
        UnknownAgentError: No worker has ever served the agent.
        UnknownBranchError: The session has no such branch.
        SessionClosedError: The session is being deleted or imported.
        AgentMismatchError: The session belongs to another agent.
        ContinueRejectedError: The lane cannot be continued.
        FollowUpRejectedError: No run is active.
        InvalidInputError: The task cannot be stored.
        DurabilityError: It was accepted, and too few replicas confirmed it.
        ServerUnavailableError: The server is away.
    """
    intent: JobType = _intent(job)
    data = encode(job)
    task = getattr(job, "task", "").encode()
    if len(task) > payload_bytes_max:
        raise PayloadTooLargeError(what="the task", size=len(task), limit=payload_bytes_max)
    queued = RunQueued(run_id=job.run_id, branch_id=job.branch_id, intent=intent, agent=job.agent)
    policy = job.failure_policy if isinstance(job, FollowUpJob) else FollowUpFailurePolicy.CONTINUE
    code, *rest = await partition.transition(
        "submit",
        job.run_id,
        job.run_id,
        job.session_id,
        job.branch_id,
        job.agent,
        job.queue,
        intent,
        data,
        encode_body(queued)[1],
        hashlib.sha256(idempotency_key.encode()).hexdigest() if idempotency_key else "",
        _digest(job, intent, policy, task),
        idempotency_s * 1000,
        policy,
        _CONTINUABLE,
        partition.cold_ms,
        barrier=True,
    )
    words = [word.decode() for word in rest]
    if code in (b"OK", b"EXISTS"):
        return Submitted(run_id=words[0], queued_id=words[1], created=code == b"OK")
    raise _refusal(code, words, job, idempotency_key)


def _digest(job: AnyJob, intent: JobType, policy: FollowUpFailurePolicy, task: bytes) -> str:
    place = "|".join([job.branch_id, job.queue, intent, policy])
    return hashlib.sha256(place.encode() + b"|" + task).hexdigest()


def _intent(job: AnyJob) -> JobType:
    if isinstance(job, RunJob):
        return "run"
    return "follow_up" if isinstance(job, FollowUpJob) else "continue"


_CONTINUE_REFUSALS = {
    b"AGENT_ACTIVE": ContinueRejectedReason.AGENT_ACTIVE,
    b"NO_PREVIOUS_RUN": ContinueRejectedReason.NO_PREVIOUS_RUN,
    b"NOT_CONTINUABLE": ContinueRejectedReason.UNSUPPORTED_STOP_REASON,
}


def _refusal(code: bytes, words: list[str], job: AnyJob, key: str | None) -> RunlaneError:
    session_id, branch_id = job.session_id, job.branch_id
    match code:
        case b"IDEMPOTENCY_CONFLICT":
            error: RunlaneError = IdempotencyConflictError(key=key or "", run_id=words[0])
        case b"UNKNOWN_AGENT":
            error = UnknownAgentError(job.agent, tuple(sorted(words)))
        case b"UNKNOWN_BRANCH":
            error = UnknownBranchError(session_id, branch_id, known=tuple(words))
        case b"SESSION_CLOSED":
            error = SessionClosedError(session_id, words[0])
        case b"AGENT_MISMATCH":
            error = AgentMismatchError(session_id=session_id, agent=job.agent, bound_agent=words[0])
        case b"AGENT_IDLE":
            receipt = ControlReceipt(run_id=job.run_id, status=ControlStatus.AGENT_IDLE)
            error = FollowUpRejectedError(
                session_id=session_id, branch_id=branch_id, receipt=receipt
            )
        case _:
            error = ContinueRejectedError(
                session_id=session_id,
                branch_id=branch_id,
                reason=_CONTINUE_REFUSALS[code],
                run_id=words[-1] if words else None,
            )
    return error
