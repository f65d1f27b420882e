"""An open run of a journal of EJAgent: what it may say, and the records that this gives."""

from collections import deque
from collections.abc import Iterator, Sequence

from runlane.journal.transfer.breach import BreachError
from runlane.journal.transfer.ejagent_lines import SteeringData
from runlane.journal.transfer.ejagent_messages import FileMessage
from runlane.journal.transfer.transcript import abandoned
from runlane.journal.wire.messages import (
    AssistantMessage,
    ModelToolCall,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.records import (
    AnyBody,
    MessageAppended,
    RunContinued,
    RunStarted,
    ToolCompleted,
)
from runlane.journal.wire.results import AgentRunResult, RunUsage, StopReason
from runlane.journal.wire.tree import MessagesAppended, SteeringApplied

_VERSION = "imported"
_WORKER = "import"


class FileRun:
    """A run that has begun and not ended.

    Attributes:
        file_id: Its id in the file.
        run_id: Its id here.
        sequence: The number in the file that its next message must not fall behind.
    """

    def __init__(
        self, file_id: str, run_id: str, sequence: int, *, unanswered: Sequence[ModelToolCall] = ()
    ) -> None:
        """Begin.

        Args:
            file_id: Its id in the file.
            run_id: Its id here.
            sequence: Where it begins.
            unanswered: Calls that it made in a document, whose results may yet come.
        """
        self.file_id = file_id
        self.run_id = run_id
        self.sequence = sequence
        self._turn = 0
        self._usage = RunUsage()
        self._await(unanswered)

    def started(self, agent: str, task: str | None) -> RunStarted | RunContinued:
        """Return the record with which it begins."""
        if task is None:
            return RunContinued(
                run_id=self.run_id, attempt=1, agent=agent, version=_VERSION, worker_id=_WORKER
            )
        return RunStarted(
            run_id=self.run_id,
            attempt=1,
            agent=agent,
            version=_VERSION,
            worker_id=_WORKER,
            message=UserMessage(task),
        )

    def add(self, message: FileMessage, sequence: int) -> Iterator[AnyBody]:
        """Return the records that a message gives.

        Raises:
            BreachError: The sequence goes backwards.
        """
        self._advance(sequence)
        found = message.to_message()
        if isinstance(found, AssistantMessage):
            yield from self.abandon()
            yield self._respond(found, message)
        elif isinstance(found, ToolMessage):
            yield self._answer(found, message)
        else:
            yield MessagesAppended(run_id=self.run_id, messages=(found,))

    def steer(self, data: SteeringData, sequence: int) -> SteeringApplied:
        """Return the record of applied steering.

        Raises:
            BreachError: The sequence goes backwards.
        """
        self._advance(sequence)
        return SteeringApplied(
            run_id=self.run_id,
            input_id=data.input_id,
            content=data.content,
            target_turn=data.target_turn,
        )

    def abandon(self) -> Iterator[MessagesAppended]:
        """Answer the calls of a document that the run never answered.

        Calls that it made in records need no answer: every projection gives them one at its end.
        """
        places = sorted(place for places in self._waiting.values() for place in places)
        if places and self._turn == 0:
            messages = tuple(abandoned(self._calls[place]) for place in places)
            yield MessagesAppended(run_id=self.run_id, messages=messages)

    def cut_short(self, reason: StopReason, error: str) -> AgentRunResult:
        """Return a result for a run that the file does not end."""
        return AgentRunResult(
            status=reason.status,
            stop_reason=reason,
            turns=self._turn,
            error=error,
            usage=self._usage,
        )

    def _advance(self, sequence: int) -> None:
        if sequence < self.sequence:
            raise BreachError(f"sequence {sequence} goes back behind {self.sequence}")
        self.sequence = sequence

    def _await(self, calls: Sequence[ModelToolCall]) -> None:
        self._calls = calls
        self._waiting: dict[str, deque[int]] = {}
        for place, call in enumerate(calls):
            self._waiting.setdefault(call.id, deque()).append(place)

    def _respond(self, response: AssistantMessage, message: FileMessage) -> MessageAppended:
        usage = message.to_usage()
        self._turn += 1
        self._usage = self._usage.plus(usage)
        self._await(response.tool_calls)
        return MessageAppended(
            run_id=self.run_id, attempt=1, turn=self._turn, message=response, usage=usage
        )

    def _answer(self, result: ToolMessage, message: FileMessage) -> AnyBody:
        waiting = self._waiting.get(result.tool_call_id)
        if not waiting:
            return MessagesAppended(run_id=self.run_id, messages=(result,))
        place = waiting.popleft()
        answer = message.to_result(self._calls[place].name)
        if self._turn == 0:
            return MessagesAppended(run_id=self.run_id, messages=(answer,))
        return ToolCompleted(
            run_id=self.run_id,
            attempt=1,
            turn=self._turn,
            index=place,
            outcome=message.outcome,
            message=answer,
        )
