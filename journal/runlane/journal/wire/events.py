"""What subscribers hear: committed events (one per record) and provisional ones (live only)."""

from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct

from runlane.journal.wire.records import CONTROL_BRANCH, AttemptStarted, Record, RunFinished
from runlane.journal.wire.tree import Checkpoint, HistoryImported


class EventKind(StrEnum):
    """Names of events; EJAgent's where it has one."""

    RUN_QUEUED = "run_queued"
    ABORT_REQUESTED = "abort_requested"
    LEASE_STOLEN = "lease_stolen"
    AGENT_STARTED = "agent_started"
    AGENT_CONTINUED = "agent_continued"
    SUPERSEDED = "superseded"
    TURN_STARTED = "turn_started"
    ASSISTANT_TEXT_DELTA = "assistant_text_delta"
    ASSISTANT_THINKING_DELTA = "assistant_thinking_delta"
    MESSAGE_COMPLETED = "message_completed"
    TOOL_STARTED = "tool_started"
    TOOL_PROGRESSED = "tool_progressed"
    TOOL_COMPLETED = "tool_completed"
    TURN_COMPLETED = "turn_completed"
    MESSAGES_APPENDED = "messages_appended"
    STEERING_APPLIED = "steering_applied"
    STEERING_DISCARDED = "steering_discarded"
    AGENT_FINISHED = "agent_finished"
    BRANCH_CREATED = "branch_created"
    BRANCH_PROMOTED = "branch_promoted"
    COMPACTION_COMPLETED = "compaction_completed"
    CHECKPOINT = "checkpoint"
    HISTORY_IMPORTED = "history_imported"
    JOURNAL_RESET = "journal_reset"


KIND_OF_RECORD: Final = {
    "run_queued": EventKind.RUN_QUEUED,
    "abort_requested": EventKind.ABORT_REQUESTED,
    "run_started": EventKind.AGENT_STARTED,
    "run_continued": EventKind.AGENT_CONTINUED,
    "attempt_started": EventKind.SUPERSEDED,
    "message_appended": EventKind.MESSAGE_COMPLETED,
    "tool_started": EventKind.TOOL_STARTED,
    "tool_completed": EventKind.TOOL_COMPLETED,
    "run_finished": EventKind.AGENT_FINISHED,
    "lease_stolen": EventKind.LEASE_STOLEN,
    "messages_appended": EventKind.MESSAGES_APPENDED,
    "steering_applied": EventKind.STEERING_APPLIED,
    "steering_discarded": EventKind.STEERING_DISCARDED,
    "branch_created": EventKind.BRANCH_CREATED,
    "branch_promoted": EventKind.BRANCH_PROMOTED,
    "compaction_applied": EventKind.COMPACTION_COMPLETED,
    "checkpoint": EventKind.CHECKPOINT,
    "history_imported": EventKind.HISTORY_IMPORTED,
}


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened, with its place.

    Attributes:
        session_id: The conversation.
        branch_id: The branch of the run.
        run_id: The run; empty for what belongs to none, such as `journal_reset`.
        kind: What happened.
        at_ms: Server time in milliseconds since the epoch (a worker's clock if provisional).
        attempt: The try that it belongs to; 0 before the first.
        turn: The model response that it belongs to; 0 outside of turns.
        payload: Fields of that kind, as plain data.
        cursor: The record id of a committed event: subscribe again after it. None if
            provisional.
        revision: The record's number; for a provisional event that of the last record of its
            branch before it.
        count: 0 if committed; a provisional event counts from 1 after that record.
    """

    session_id: str
    branch_id: str
    run_id: str
    kind: EventKind
    at_ms: int
    attempt: int = 0
    turn: int = 0
    payload: dict[str, Any] = {}
    cursor: str | None = None
    revision: int = 0
    count: int = 0

    @property
    def committed(self) -> bool:
        """Whether the journal keeps it."""
        return self.cursor is not None

    @property
    def terminal(self) -> bool:
        """Whether it is the last event of its run."""
        return self.kind is EventKind.AGENT_FINISHED


def event_of(session_id: str, record: Record) -> Event:
    """Return the committed event of a record: the same one live and in every replay."""
    body = record.body
    # What stands for a whole branch repeats what was heard before: it is left out.
    whole = isinstance(body, Checkpoint | HistoryImported)
    branch_id = record.branch_id
    if branch_id == CONTROL_BRANCH:
        branch_id = getattr(body, "branch_id", branch_id)
    payload: dict[str, Any] = {} if whole else msgspec.to_builtins(body)
    for place in ("run_id", "branch_id", "attempt", "turn"):
        payload.pop(place, None)
    if isinstance(body, AttemptStarted):
        payload["superseded_attempt"] = body.attempt - 1
    return Event(
        session_id=session_id,
        branch_id=branch_id,
        run_id=getattr(body, "run_id", ""),
        kind=KIND_OF_RECORD[record.kind],
        at_ms=record.at_ms,
        attempt=getattr(body, "attempt", 0),
        turn=body.result.turns if isinstance(body, RunFinished) else getattr(body, "turn", 0),
        payload=payload,
        cursor=record.record_id,
        revision=record.revision,
    )
