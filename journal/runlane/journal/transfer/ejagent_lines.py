"""The lines of EJAgent's journals: one envelope, nine kinds. SimAgentPlg's have two kinds fewer."""

from types import MappingProxyType
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from runlane.journal.transfer.breach import BreachError
from runlane.journal.transfer.ejagent_documents import FileSummary, NonEmpty, NotBlank
from runlane.journal.transfer.ejagent_messages import FileMessage, Natural, Positive
from runlane.journal.transfer.ejagent_results import FileResult


class RunStartedData(Struct, frozen=True):
    """A run began with a task."""

    run_id: NonEmpty
    task: str


class RunContinuedData(Struct, frozen=True):
    """A run began without one."""

    run_id: NonEmpty


class MessageData(Struct, frozen=True):
    """The model gave a response."""

    run_id: str
    message: FileMessage


class MessagesData(Struct, frozen=True):
    """A tool call has its result; the list may be empty."""

    run_id: str
    messages: list[FileMessage]


class SteeringData(Struct, frozen=True):
    """The user said something while the run went on."""

    run_id: str
    input_id: str
    content: str
    target_turn: Positive


class CompactionData(Struct, frozen=True):
    """From here on the model reads these messages."""

    operation_id: NonEmpty
    summary: FileSummary
    messages: Annotated[list[FileMessage], Meta(min_length=1)]


class RunFinishedData(Struct, frozen=True):
    """A run ended."""

    run_id: str
    result: FileResult


class CheckpointData(Struct, frozen=True):
    """A document stands for all that came before."""

    document: msgspec.Raw


class BranchCreatedData(Struct, frozen=True):
    """A branch begins at a record of another one."""

    source_branch_id: NonEmpty
    source_head_id: NonEmpty
    intent: Literal["fork", "rollback", "retry"]
    base_record_id: NonEmpty | None = None
    retried_run_id: NonEmpty | None = None

    def __post_init__(self) -> None:
        if (self.intent == "retry") != (self.retried_run_id is not None):
            raise BreachError("retried_run_id is there if, and only if, the intent is retry")
        if self.base_record_id is None and self.intent != "retry":
            raise BreachError("base_record_id is null, which only a retry may have")


Data = (
    RunStartedData
    | RunContinuedData
    | MessageData
    | MessagesData
    | SteeringData
    | CompactionData
    | RunFinishedData
    | CheckpointData
    | BranchCreatedData
)

_DATA_OF: Final = MappingProxyType[str, type[Data]](
    {
        "run_started": RunStartedData,
        "run_continued": RunContinuedData,
        "message_appended": MessageData,
        "messages_appended": MessagesData,
        "steering_applied": SteeringData,
        "compaction_applied": CompactionData,
        "run_finished": RunFinishedData,
        "checkpoint": CheckpointData,
        "branch_created": BranchCreatedData,
    }
)


class Line(Struct, frozen=True):
    """The envelope of a line. Keys that are not here are ignored, as EJAgent does."""

    journal_schema_version: Literal[1]
    record_id: NonEmpty
    branch_id: NotBlank
    revision: Positive
    session_id: NotBlank
    sequence: Natural
    type: str
    data: msgspec.Raw
    parent_id: NonEmpty | None = None
    agent_id: NotBlank | None = None


_lines: Final = msgspec.json.Decoder(Line)
_data: Final = {kind: msgspec.json.Decoder(shape) for kind, shape in _DATA_OF.items()}


def parse_line(raw: bytes) -> tuple[Line, Data]:
    """Return the envelope of a line and its content.

    Raises:
        BreachError: Its kind is unknown.
        msgspec.MsgspecError: It is not JSON, or has not the shape of a record.
    """
    line = _lines.decode(raw)
    data = _data.get(line.type)
    if data is None:
        raise BreachError(f"unknown record type {line.type!r}")
    return line, data.decode(line.data)
