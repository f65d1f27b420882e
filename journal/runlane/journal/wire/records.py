"""What a journal stores. A record's kind names its type; past tense, since it has happened."""

from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from runlane.journal.wire.jobs import JobType
from runlane.journal.wire.messages import (
    AssistantMessage,
    ModelToolCall,
    ModelUsage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.results import AgentRunResult

CONTROL_BRANCH: Final = "@control"
"""The chain of a session for queue and control records; no branch head moves with it."""


class AttemptCause(StrEnum):
    """Why a further attempt of a run began."""

    CRASH = "crash"
    HAND_BACK = "hand_back"


class ToolOutcome(StrEnum):
    """What is known about a tool call that has a result."""

    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"
    UNKNOWN = "outcome_unknown"


class Body(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a record; every one belongs to a run."""

    run_id: str


class RunQueued(Body, frozen=True, kw_only=True):
    """The run was accepted into the lane. On the control chain."""

    branch_id: str
    intent: JobType
    agent: str


class AbortRequested(Body, frozen=True, kw_only=True):
    """Somebody asked for the run to stop. On the control chain."""

    branch_id: str
    reason: str


class InAttempt(Body, frozen=True, kw_only=True):
    """The content of a record that the worker of one attempt wrote."""

    attempt: int


class RunStarted(InAttempt, frozen=True, kw_only=True):
    """The run began with a user message."""

    agent: str
    version: str
    worker_id: str
    message: UserMessage


class RunContinued(InAttempt, frozen=True, kw_only=True):
    """The run began from where the lane stood, without a message."""

    agent: str
    version: str
    worker_id: str


class AttemptStarted(InAttempt, frozen=True, kw_only=True):
    """Another worker took the unfinished run over; what was only streamed is superseded."""

    worker_id: str
    cause: AttemptCause


class MessageAppended(InAttempt, frozen=True, kw_only=True):
    """The model gave one complete response.

    Attributes:
        turn: 1 for the first response of the run.
        usage: None if the provider did not report it.
    """

    turn: int
    message: AssistantMessage
    usage: ModelUsage | None = None


class ToolStarted(InAttempt, frozen=True, kw_only=True):
    """The intent to call a tool, written before the call. From here on it may have happened.

    Attributes:
        index: The place of the call in the assistant message, from 0.
        operation_key: `<run_id>:<turn>:<index>`, the same in every attempt.
        effect: A value of `ToolEffect`.
    """

    turn: int
    index: int
    call: ModelToolCall
    operation_key: str
    effect: str


class ToolCompleted(InAttempt, frozen=True, kw_only=True):
    """A tool call has its result, whatever it is."""

    turn: int
    index: int
    outcome: ToolOutcome
    message: ToolMessage


class RunFinished(Body, frozen=True, kw_only=True):
    """The run reached its one end. On its branch, or on the control chain if it held no fence."""

    branch_id: str
    result: AgentRunResult


AnyBody = (
    RunQueued
    | AbortRequested
    | RunStarted
    | RunContinued
    | AttemptStarted
    | MessageAppended
    | ToolStarted
    | ToolCompleted
    | RunFinished
)

KINDS: Final[MappingProxyType[str, type[AnyBody]]] = MappingProxyType(
    {
        "run_queued": RunQueued,
        "abort_requested": AbortRequested,
        "run_started": RunStarted,
        "run_continued": RunContinued,
        "attempt_started": AttemptStarted,
        "message_appended": MessageAppended,
        "tool_started": ToolStarted,
        "tool_completed": ToolCompleted,
        "run_finished": RunFinished,
    }
)
KIND_OF: Final = MappingProxyType({body: kind for kind, body in KINDS.items()})


class Record(Struct, frozen=True, kw_only=True):
    """One entry of a journal.

    Attributes:
        revision: Its number in the session, from 1, without gaps.
        record_id: `<revision>-<inc>.<hash>`; the hash covers the whole history of the branch.
        parent_id: The record before it on its branch; empty for the first.
        branch_id: Its branch, or `@control`.
        kind: A key of `KINDS`.
        at_ms: Server time of the append, in milliseconds since the epoch; for people to read.
        body: What happened.
    """

    revision: int
    record_id: str
    parent_id: str
    branch_id: str
    kind: str
    at_ms: int
    body: AnyBody

    @property
    def inc(self) -> str:
        """Which life of the server wrote it: another one after each restart and promotion."""
        return self.record_id.partition("-")[2].partition(".")[0]
