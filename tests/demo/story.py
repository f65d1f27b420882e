"""A demo in small in which everything held, for tests to damage.

One session on the workers a, b and c: a is killed in the middle of the run's refund, b hands the
follow-up back after its refund, c does the rest.
"""

from runlane.journal.wire.events import event_of
from runlane.journal.wire.messages import AssistantMessage, ModelToolCall, ToolMessage, UserMessage
from runlane.journal.wire.records import (
    CONTROL_BRANCH,
    KIND_OF,
    AnyBody,
    AttemptCause,
    AttemptStarted,
    MessageAppended,
    Record,
    RunContinued,
    RunFinished,
    RunQueued,
    RunStarted,
    ToolCompleted,
    ToolOutcome,
    ToolStarted,
)
from runlane.journal.wire.results import AgentRunResult, RunStatus, StopReason
from runlane.worker.demo.ledger import Entry, Mark
from runlane.worker.demo.observed import Drain, Kill, Observed, SessionTrace
from runlane.worker.tools import ToolEffect

RUN, FOLLOW_UP, CONTINUE = "run", "follow-up", "continue"
CUT, WHOLE = "run:1:0", "follow-up:1:0"
"""Operation keys of the two refunds."""
COMPLETED = AgentRunResult(status=RunStatus.COMPLETED, stop_reason=StopReason.TEXT_RESPONSE)
RECORD_S = 0.1
"""Between two records; the first one is at this time too."""

_REFUND = ModelToolCall(id="c1", name="refund")


def story() -> Observed:
    """Return what was observed."""
    trace = SessionTrace("s1", accepted=[RUN, FOLLOW_UP, CONTINUE])
    trace.results = dict.fromkeys(trace.accepted, COMPLETED)
    trace.records = journal(
        queued(RUN),
        begun(RUN, "a"),
        queued(FOLLOW_UP),
        called(RUN),
        intent(RUN),  # at 0.5 s; a is killed at 0.55 s
        taken_over(RUN, "b", AttemptCause.CRASH),  # at 0.6 s
        settled(RUN, ToolOutcome.UNKNOWN, attempt=2),
        ended(RUN),
        begun(FOLLOW_UP, "b"),
        called(FOLLOW_UP),
        intent(FOLLOW_UP),  # at 1.1 s; b is drained at 1.15 s
        settled(FOLLOW_UP, ToolOutcome.OK, attempt=1),
        taken_over(FOLLOW_UP, "c", AttemptCause.HAND_BACK),  # at 1.3 s
        ended(FOLLOW_UP),
        queued(CONTINUE),
        RunContinued(run_id=CONTINUE, attempt=1, agent="support", version="1", worker_id="c"),
        ended(CONTINUE),
    )
    hear_all(trace)
    return Observed(
        scripted=True,
        sessions=[trace],
        kill=Kill(worker_id="a", at_s=0.55, held=(RUN,), refund=CUT),
        drain=Drain(worker_id="b", at_s=1.15, exit_code=0),
        ledger=[
            Entry(Mark.STARTED, CUT, 1, 10),
            Entry(Mark.STARTED, WHOLE, 1, 11),
            Entry(Mark.DONE, WHOLE, 1, 11),
        ],
    )


def hear_all(trace: SessionTrace) -> None:
    """Let the subscriber hear the journal, and nothing else."""
    trace.events, trace.attempts, trace.holders = [], [], {}
    for number, record in enumerate(trace.records, 1):
        trace.hear(event_of(trace.session_id, record), number * RECORD_S)


def journal(*bodies: AnyBody) -> list[Record]:
    return [_record(revision, body) for revision, body in enumerate(bodies, 1)]


def _record(revision: int, body: AnyBody) -> Record:
    return Record(
        revision=revision,
        record_id=f"{revision}-1.{revision:024x}",
        parent_id="",
        branch_id=CONTROL_BRANCH if isinstance(body, RunQueued) else "main",
        kind=KIND_OF[type(body)],
        at_ms=revision,
        body=body,
    )


def queued(run_id: str) -> RunQueued:
    return RunQueued(run_id=run_id, branch_id="main", intent="run", agent="support")


def begun(run_id: str, worker_id: str) -> RunStarted:
    return RunStarted(
        run_id=run_id,
        attempt=1,
        agent="support",
        version="1",
        worker_id=worker_id,
        message=UserMessage("Refund it."),
    )


def taken_over(run_id: str, worker_id: str, cause: AttemptCause) -> AttemptStarted:
    return AttemptStarted(run_id=run_id, attempt=2, worker_id=worker_id, cause=cause)


def called(run_id: str) -> MessageAppended:
    message = AssistantMessage(tool_calls=(_REFUND,))
    return MessageAppended(run_id=run_id, attempt=1, turn=1, message=message)


def intent(run_id: str) -> ToolStarted:
    return ToolStarted(
        run_id=run_id,
        attempt=1,
        turn=1,
        index=0,
        call=_REFUND,
        operation_key=f"{run_id}:1:0",
        effect=ToolEffect.SIDE_EFFECTING,
    )


def settled(run_id: str, outcome: ToolOutcome, *, attempt: int) -> ToolCompleted:
    message = ToolMessage(tool_call_id="c1", tool_name="refund", content="")
    return ToolCompleted(
        run_id=run_id, attempt=attempt, turn=1, index=0, outcome=outcome, message=message
    )


def ended(run_id: str, result: AgentRunResult = COMPLETED) -> RunFinished:
    return RunFinished(run_id=run_id, branch_id="main", result=result)
