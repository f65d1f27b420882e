"""What a journal stores. A record's kind names its type; past tense, since it has happened."""

from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.bodies import InAttempt, RunBody
from runlane.journal.wire.jobs import JobType
from runlane.journal.wire.messages import (
    AssistantMessage,
    ModelToolCall,
    ModelUsage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.results import AgentRunResult, StopReason
from runlane.journal.wire.tree import (
    BranchCreated,
    BranchPromoted,
    Checkpoint,
    CompactionApplied,
    HistoryImported,
    MessagesAppended,
    SteeringApplied,
)

CONTROL_BRANCH: Final = "@control"
"""The chain of a session for queue and control records; no branch head moves with it."""


class AttemptCause(StrEnum):
    """Why a further attempt of a run began."""

    CRASH = "crash"
    HAND_BACK = "hand_back"
    STOLEN = "stolen"


class ToolOutcome(StrEnum):
    """What is known about a tool call that has a result."""

    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"
    UNKNOWN = "outcome_unknown"


class RunQueued(RunBody, frozen=True, kw_only=True):
    """The run was accepted into the lane. On the control chain."""

    branch_id: str
    intent: JobType
    agent: str


class AbortRequested(RunBody, frozen=True, kw_only=True):
    """Somebody asked for the run to stop. On the control chain."""

    branch_id: str
    reason: str


class LeaseStolen(RunBody, frozen=True, kw_only=True):
    """An operator took the lane from the worker that held it. On the control chain."""

    branch_id: str
    reason: str


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
        arguments: JSON text of what the tool is called with, where that is not what the model
            wrote; None where it is.
        counted: The names under which a middleware counted the call.
    """

    turn: int
    index: int
    call: ModelToolCall
    operation_key: str
    effect: str
    arguments: str | None = None
    counted: tuple[str, ...] = ()


class ToolCompleted(InAttempt, frozen=True, kw_only=True):
    """A tool call has its result, whatever it is.

    Attributes:
        message: The result as the model reads it.
        full: The whole content, where that was too large for the message.
        counted: The names under which a middleware counted a call that it then refused.
    """

    turn: int
    index: int
    outcome: ToolOutcome
    message: ToolMessage
    full: BlobRef | None = None
    counted: tuple[str, ...] = ()


class SteeringDiscarded(RunBody, frozen=True, kw_only=True):
    """What the user said to the run came to nothing: the run ended before its model could hear it.

    On its branch, or on the control chain if the run had not begun.

    Attributes:
        input_id: What the receipt of the input named.
        content: What was said.
        reason: Why the run ended.
    """

    branch_id: str
    input_id: str
    content: str
    reason: StopReason


class RunFinished(RunBody, frozen=True, kw_only=True):
    """The run reached its one end. On its branch, or on the control chain if it had not begun.

    Attributes:
        result: How it ended. Its output is left out where it is the text of the parent record,
            an assistant message; readers put it back.
        output_in_parent: Whether it was left out.
    """

    branch_id: str
    result: AgentRunResult
    output_in_parent: bool = False


AnyBody = (
    RunQueued
    | AbortRequested
    | LeaseStolen
    | RunStarted
    | RunContinued
    | AttemptStarted
    | MessageAppended
    | ToolStarted
    | ToolCompleted
    | RunFinished
    | MessagesAppended
    | SteeringApplied
    | SteeringDiscarded
    | BranchCreated
    | BranchPromoted
    | CompactionApplied
    | Checkpoint
    | HistoryImported
)

KINDS: Final[MappingProxyType[str, type[AnyBody]]] = MappingProxyType(
    {
        "run_queued": RunQueued,
        "abort_requested": AbortRequested,
        "lease_stolen": LeaseStolen,
        "run_started": RunStarted,
        "run_continued": RunContinued,
        "attempt_started": AttemptStarted,
        "message_appended": MessageAppended,
        "tool_started": ToolStarted,
        "tool_completed": ToolCompleted,
        "run_finished": RunFinished,
        "messages_appended": MessagesAppended,
        "steering_applied": SteeringApplied,
        "steering_discarded": SteeringDiscarded,
        "branch_created": BranchCreated,
        "branch_promoted": BranchPromoted,
        "compaction_applied": CompactionApplied,
        "checkpoint": Checkpoint,
        "history_imported": HistoryImported,
    }
)
KIND_OF: Final = MappingProxyType({body: kind for kind, body in KINDS.items()})


class Record(Struct, frozen=True, kw_only=True):
    """One entry of a journal.

    Attributes:
        revision: Its number in the session, from 1, without gaps.
        record_id: `<revision>-<inc>.<hash>`; the hash covers the whole history of the branch.
        parent_id: The record before it on its branch, or the one that the branch goes on from;
            empty for the first.
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
