"""Whole sessions as one document: what EJAgent's checkpoints hold."""

import json
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from runlane.journal.transfer.breach import BreachError
from runlane.journal.transfer.ejagent_messages import (
    FileMessage,
    Integer,
    Natural,
    Positive,
    file_message,
)
from runlane.journal.transfer.ejagent_results import FileResult, file_result
from runlane.journal.transfer.names import run_id_of
from runlane.journal.wire.messages import ContextMessage
from runlane.journal.wire.results import AgentRunResult, StopReason
from runlane.journal.wire.tree import LastRun, SummaryEntry

DOCUMENT_FORMAT: Final = "ejagent-1"
"""Names these documents in `HistoryImported`."""

NonEmpty = Annotated[str, Meta(min_length=1)]
NotBlank = Annotated[str, Meta(pattern=r"\S")]

_UNFINISHED: Final = "the run was unfinished in the imported session"


class FileSummary(Struct, frozen=True):
    """What a compaction put in the place of older messages, in a file."""

    content: NotBlank
    source: NotBlank
    history_start_index: Natural
    first_kept_index: Integer
    summarized_message_count: Positive
    tokens_before: Natural

    def __post_init__(self) -> None:
        if self.first_kept_index <= self.history_start_index:
            raise BreachError("first_kept_index is not after history_start_index")

    def to_summary(self) -> SummaryEntry:
        """Return the summary as our records hold it."""
        return SummaryEntry(**msgspec.structs.asdict(self))


class _Entry(Struct, frozen=True):
    run_id: NonEmpty
    sequence: Positive
    message: FileMessage


class _Run(Struct, frozen=True):
    run_id: NonEmpty
    start_sequence: Positive
    task: str | None = None
    intent: Literal["task", "continue"] = "task"
    finish_sequence: Integer | None = None
    result: FileResult | None = None

    def __post_init__(self) -> None:
        if (self.intent == "task") != (self.task is not None):
            raise BreachError("a run has a task if, and only if, its intent is task")
        if (self.finish_sequence is None) != (self.result is None):
            raise BreachError("finish_sequence and result come together")
        if self.finish_sequence is not None and self.finish_sequence <= self.start_sequence:
            raise BreachError("finish_sequence is not after start_sequence")


class _Compaction(Struct, frozen=True):
    operation_id: NonEmpty
    sequence: Positive
    summary: FileSummary
    messages: Annotated[list[FileMessage], Meta(min_length=1)]
    covered_entry_count: Natural


class FileSession(Struct, frozen=True):
    """A session of EJAgent: all its messages, runs and compactions.

    SimAgentPlg's documents are the same without `intent`.
    """

    session_id: NotBlank
    entries: list[_Entry]
    runs: list[_Run]
    compactions: list[_Compaction]
    agent_id: NotBlank | None = None

    def __post_init__(self) -> None:
        entries = len(self.entries)
        if any(compaction.covered_entry_count > entries for compaction in self.compactions):
            raise BreachError("a compaction covers more entries than there are")

    @property
    def empty(self) -> bool:
        """Whether nothing has happened yet."""
        return not (self.entries or self.runs or self.compactions)

    @property
    def open_run(self) -> _Run | None:
        """The run that has no result."""
        return next((run for run in self.runs if run.result is None), None)

    @property
    def last_run(self) -> LastRun | None:
        """The run that ended last."""
        for run in reversed(self.runs):
            if run.result is not None:
                return LastRun(run_id_of(run.run_id), run.result.to_result().stop_reason)
        return None

    def last_sequence(self, run: _Run) -> int:
        """Return the number that the run's next message must not fall behind."""
        numbers = (entry.sequence for entry in self.entries if entry.run_id == run.run_id)
        return max(numbers, default=run.start_sequence)

    def messages(self) -> list[ContextMessage]:
        """Return the transcript that a model reads: what the last compaction left, and the rest."""
        compacted: list[FileMessage] = []
        covered = 0
        if self.compactions:
            compacted = self.compactions[-1].messages
            covered = self.compactions[-1].covered_entry_count
        later = (entry.message for entry in self.entries[covered:])
        return [message.to_message() for message in (*compacted, *later)]


class FileDocument(Struct, frozen=True):
    """The document of a checkpoint."""

    schema_version: Literal[1]
    session: FileSession

    def __post_init__(self) -> None:
        runs = [run.run_id for run in self.session.runs]
        if len(set(runs)) < len(runs):
            raise BreachError("a run is there twice")
        if sum(run.result is None for run in self.session.runs) > 1:
            raise BreachError("more than one run is unfinished")


def canonical(document: Any) -> str:
    """Return JSON text as EJAgent writes it: sorted keys, no spaces, text as it is."""
    return json.dumps(
        document, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False
    )


def document_of(
    session_id: str,
    agent_id: str,
    messages: Iterable[ContextMessage] = (),
    last_run: LastRun | None = None,
    summary: SummaryEntry | None = None,
) -> dict[str, Any]:
    """Return a document with these messages, all of them in the run that ended last."""
    run_id = last_run.run_id if last_run else "imported"
    entries = [
        {"run_id": run_id, "sequence": number, "message": file_message(message, summary=summary)}
        for number, message in enumerate(messages, 1)
    ]
    runs = [_run_of(last_run, len(entries) + 2)] if last_run else []
    return _document(session_id, agent_id, {"entries": entries, "runs": runs, "compactions": []})


def restored(document: str, session_id: str, agent_id: str) -> dict[str, Any]:
    """Return an imported document as one of this session, with no run left open."""
    session: dict[str, Any] = json.loads(document)["session"]
    shape = msgspec.convert(session, FileSession)
    for run, shown in zip(session["runs"], shape.runs, strict=True):
        if shown.result is None:
            run["finish_sequence"] = max(shape.last_sequence(shown), shown.start_sequence) + 1
            run["result"] = _ended(StopReason.WORKER_LOST, _UNFINISHED)
    return _document(session_id, agent_id, session)


def _document(session_id: str, agent_id: str, session: dict[str, Any]) -> dict[str, Any]:
    names = {"session_id": session_id, "agent_id": agent_id}
    return {"schema_version": 1, "session": session | names}


def _run_of(run: LastRun, finish_sequence: int) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "task": None,
        "intent": "continue",
        "start_sequence": 1,
        "finish_sequence": finish_sequence,
        "result": _ended(run.stop_reason, None),
    }


def _ended(reason: StopReason, error: str | None) -> dict[str, Any]:
    return file_result(AgentRunResult(status=reason.status, stop_reason=reason, error=error))
