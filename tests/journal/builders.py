"""Jobs, results and records with everything filled in that a test does not care about."""

from collections.abc import Sequence
from typing import Any

from runlane.journal.ids import new_run_id
from runlane.journal.lease import Lease
from runlane.journal.wire.events import Event, EventKind
from runlane.journal.wire.jobs import (
    AnyJob,
    ContinueJob,
    FollowUpFailurePolicy,
    FollowUpJob,
    RunJob,
)
from runlane.journal.wire.messages import AssistantMessage, ModelToolCall, ToolMessage, UserMessage
from runlane.journal.wire.records import (
    AnyBody,
    AttemptCause,
    AttemptStarted,
    MessageAppended,
    RunStarted,
    SteeringDiscarded,
    ToolCompleted,
    ToolOutcome,
    ToolStarted,
)
from runlane.journal.wire.results import AgentRunResult, StopReason
from runlane.journal.wire.tree import SteeringApplied


def job_of(
    intent: str = "run",
    *,
    session: str = "s",
    branch: str = "main",
    agent: str = "a",
    version: str | None = None,
    task: str = "hi",
    policy: FollowUpFailurePolicy = FollowUpFailurePolicy.DISCARD,
    run_id: str = "",
) -> AnyJob:
    place: dict[str, Any] = {
        "run_id": run_id or new_run_id(),
        "session_id": session,
        "branch_id": branch,
        "agent": agent,
        "version": version,
    }
    match intent:
        case "run":
            return RunJob(**place, task=task)
        case "follow_up":
            return FollowUpJob(**place, task=task, failure_policy=policy)
        case _:
            return ContinueJob(**place)


def result_of(
    stop_reason: StopReason = StopReason.TEXT_RESPONSE, output: str | None = None
) -> AgentRunResult:
    return AgentRunResult(
        status=stop_reason.status, stop_reason=stop_reason, turns=1, output=output
    )


def started(lease: Lease, worker: str = "w1") -> RunStarted:
    return RunStarted(
        run_id=lease.run_id,
        attempt=lease.attempt,
        agent="a",
        version="1",
        worker_id=worker,
        message=UserMessage("hi"),
    )


def said(
    lease: Lease, turn: int = 1, text: str = "yo", calls: Sequence[str] = ()
) -> MessageAppended:
    return MessageAppended(
        run_id=lease.run_id,
        attempt=lease.attempt,
        turn=turn,
        message=AssistantMessage(
            text, tool_calls=tuple(ModelToolCall(id=f"c-{name}", name=name) for name in calls)
        ),
    )


def taken_over(lease: Lease, worker: str = "w2") -> AttemptStarted:
    return AttemptStarted(
        run_id=lease.run_id,
        attempt=lease.attempt,
        worker_id=worker,
        cause=lease.cause or AttemptCause.CRASH,
    )


def intent_of(
    message: MessageAppended, index: int, *, attempt: int = 0, effect: str = "side_effecting"
) -> ToolStarted:
    return ToolStarted(
        run_id=message.run_id,
        attempt=attempt or message.attempt,
        turn=message.turn,
        index=index,
        call=message.message.tool_calls[index],
        operation_key=f"{message.run_id}:{message.turn}:{index}",
        effect=effect,
    )


def outcome_of(
    message: MessageAppended,
    index: int,
    *,
    attempt: int = 0,
    outcome: ToolOutcome = ToolOutcome.OK,
) -> ToolCompleted:
    call = message.message.tool_calls[index]
    return ToolCompleted(
        run_id=message.run_id,
        attempt=attempt or message.attempt,
        turn=message.turn,
        index=index,
        outcome=outcome,
        message=ToolMessage(tool_call_id=call.id, tool_name=call.name, content="done"),
    )


def heard(lease: Lease, *input_ids: str, turn: int = 1) -> list[AnyBody]:
    """Return what a worker writes when the model is to hear inputs."""
    return [
        SteeringApplied(run_id=lease.run_id, input_id=each, content="more", target_turn=turn)
        for each in input_ids
    ]


def unheard(
    lease: Lease, *input_ids: str, reason: StopReason = StopReason.MAX_STEPS
) -> list[AnyBody]:
    """Return what a worker writes when the run ends before."""
    return [
        SteeringDiscarded(
            run_id=lease.run_id,
            branch_id=lease.branch_id,
            input_id=each,
            content="more",
            reason=reason,
        )
        for each in input_ids
    ]


def delta(lease: Lease, text: str = "y", count: int = 1) -> Event:
    return Event(
        session_id=lease.session_id,
        branch_id=lease.branch_id,
        run_id=lease.run_id,
        kind=EventKind.ASSISTANT_TEXT_DELTA,
        at_ms=0,
        attempt=lease.attempt,
        turn=1,
        payload={"text": text},
        count=count,
    )
