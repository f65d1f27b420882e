"""What the records of one branch are in the words of EJAgent's journals."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from runlane.journal.transfer.ejagent_documents import DOCUMENT_FORMAT, document_of, restored
from runlane.journal.transfer.ejagent_messages import file_message
from runlane.journal.transfer.ejagent_results import file_result
from runlane.journal.transfer.transcript import abandoned
from runlane.journal.wire.bodies import RunBody
from runlane.journal.wire.messages import ContextMessage, ModelToolCall
from runlane.journal.wire.records import (
    AnyBody,
    MessageAppended,
    RunContinued,
    RunFinished,
    RunStarted,
    ToolCompleted,
    ToolOutcome,
)
from runlane.journal.wire.results import AgentRunResult
from runlane.journal.wire.tree import (
    CompactionApplied,
    HistoryImported,
    LastRun,
    MessagesAppended,
    SteeringApplied,
    SummaryEntry,
)


class Words(NamedTuple):
    """A line without its envelope."""

    kind: str
    data: dict[str, Any]
    sequence: int = 0


class BranchWriter:
    """A branch that is written: no contents of it but the last summary and the last text.

    Attributes:
        summary: What the last compaction on the path wrote.
    """

    def __init__(self, session_id: str, agent_id: str, summary: SummaryEntry | None = None) -> None:
        self.summary = summary
        self._session_id = session_id
        self._agent_id = agent_id
        self._run_id: str | None = None
        self._sequence = 0
        self._waiting: dict[int, ModelToolCall] = {}
        self._text: str | None = None

    def say(self, body: AnyBody) -> Iterator[Words]:
        """Return what a record is: nothing, for what EJAgent has no word for."""
        text, self._text = self._text, None
        match body:
            case RunStarted(run_id=run_id, message=message):
                yield self._begin("run_started", run_id, {"task": message.content})
            case RunContinued(run_id=run_id):
                yield self._begin("run_continued", run_id, {})
            case CompactionApplied():
                yield self._compact(body)
            case HistoryImported():
                yield self._restore(body)
            case RunBody(run_id=run_id) if run_id == self._run_id:
                yield from self._go_on(body, text)
            case _:
                pass

    def jump(
        self,
        messages: list[ContextMessage],
        last_run: LastRun | None,
        summary: SummaryEntry | None = None,
    ) -> Words:
        """Return what it is to go on from somewhere else: a checkpoint of what is there."""
        self._run_id = None
        self.summary = summary
        document = document_of(self._session_id, self._agent_id, messages, last_run, summary)
        return Words("checkpoint", {"document": document})

    def _begin(self, kind: str, run_id: str, data: dict[str, Any]) -> Words:
        self._run_id = run_id
        self._sequence = 0
        self._waiting = {}
        return self._in_run(kind, **data)

    def _go_on(self, body: AnyBody, text: str | None) -> Iterator[Words]:
        match body:
            case MessageAppended(message=message, usage=usage):
                self._waiting = dict(enumerate(message.tool_calls))
                self._text = message.content
                yield self._in_run("message_appended", message=file_message(message, usage=usage))
            case ToolCompleted(index=index, message=result, outcome=outcome):
                self._waiting.pop(index, None)
                found = [file_message(result, outcome=outcome)]
                yield self._in_run("messages_appended", messages=found)
            case MessagesAppended(messages=messages):
                found = [file_message(message) for message in messages]
                yield self._in_run("messages_appended", messages=found)
            case SteeringApplied(input_id=input_id, content=content, target_turn=turn):
                yield self._in_run(
                    "steering_applied", input_id=input_id, content=content, target_turn=turn
                )
            case RunFinished(result=result):
                output = text if body.output_in_parent else result.output
                yield from self._finish(replace(result, output=output))
            case _:
                pass

    def _finish(self, result: AgentRunResult) -> Iterator[Words]:
        for call in self._waiting.values():
            unknown = file_message(abandoned(call), outcome=ToolOutcome.UNKNOWN)
            yield self._in_run("messages_appended", messages=[unknown])
        yield self._in_run("run_finished", result=file_result(result))
        self._run_id = None

    def _in_run(self, kind: str, **data: Any) -> Words:
        self._sequence += 1
        return Words(kind, {"run_id": self._run_id, **data}, self._sequence)

    def _compact(self, body: CompactionApplied) -> Words:
        self.summary = body.summary
        self._sequence += 1
        data = {
            "operation_id": body.operation_id,
            "summary": msgspec.to_builtins(body.summary),
            "messages": [file_message(message, summary=body.summary) for message in body.messages],
        }
        return Words("compaction_applied", data, self._sequence)

    def _restore(self, body: HistoryImported) -> Words:
        if body.format != DOCUMENT_FORMAT:
            return self.jump(list(body.messages), body.last_run)
        self._run_id = None
        self.summary = None
        document = restored(body.document, self._session_id, self._agent_id)
        return Words("checkpoint", {"document": document})
