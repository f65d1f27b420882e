"""Records folded into what a worker must know of a branch. Pure: same records, same state."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from runlane.journal.record_order import RunStage, advance
from runlane.journal.wire.messages import Message, ToolMessage
from runlane.journal.wire.records import (
    CONTROL_BRANCH,
    KIND_OF,
    AnyBody,
    MessageAppended,
    Record,
    RunContinued,
    RunFinished,
    RunStarted,
    ToolCompleted,
    ToolStarted,
)
from runlane.journal.wire.results import RunUsage

ABANDONED_CALL = "the run ended before this call had a result; whether it happened is unknown"


@dataclass(slots=True)
class OpenRun:
    """A run that has begun and has not ended.

    Attributes:
        run_id: The run.
        turn: Model responses so far.
        response: The last one; None before the first.
        started: Intents for its tool calls, by place in the response.
        completed: Results of its tool calls, by place in the response.
        usage: Tokens so far.
    """

    run_id: str
    turn: int = 0
    response: MessageAppended | None = None
    started: dict[int, ToolStarted] = field(default_factory=dict[int, ToolStarted])
    completed: dict[int, ToolCompleted] = field(default_factory=dict[int, ToolCompleted])
    usage: RunUsage = field(default_factory=RunUsage)

    def calls_without_result(self) -> list[int]:
        """Return the places of calls in the last response that have no result yet."""
        calls = self.response.message.tool_calls if self.response else ()
        return [index for index in range(len(calls)) if index not in self.completed]


class Projection:
    """A branch as of its last record.

    Attributes:
        messages: The transcript, oldest first. Every tool call of an ended run has a result in
            it: where the journal has none, one that says so.
        stages: Where each run of the session stands.
        open_run: The run of this branch that has begun and not ended.
    """

    def __init__(self, branch_id: str, records: Iterable[Record] = ()) -> None:
        self.branch_id = branch_id
        self.messages: list[Message] = []
        self.stages: dict[str, RunStage] = {}
        self.open_run: OpenRun | None = None
        for record in records:
            self.add(record.branch_id, record.body)

    def add(self, branch_id: str, body: AnyBody) -> None:
        """Fold in the next record.

        Raises:
            RecordOrderError: It does not fit the run that it belongs to.
        """
        if branch_id not in (self.branch_id, CONTROL_BRANCH):
            return
        stage = self.stages.get(body.run_id, RunStage.ABSENT)
        if stage is RunStage.ABSENT and branch_id != CONTROL_BRANCH:
            stage = RunStage.QUEUED
        self.stages[body.run_id] = advance(stage, KIND_OF[type(body)], body.run_id)
        match body:
            case RunStarted():
                self.open_run = OpenRun(body.run_id)
                self.messages.append(body.message)
            case RunContinued():
                self.open_run = OpenRun(body.run_id)
            case MessageAppended():
                self._respond(body)
            case ToolStarted() if self.open_run:
                self.open_run.started[body.index] = body
            case ToolCompleted() if self.open_run:
                self.open_run.completed[body.index] = body
                self.messages.append(body.message)
            case RunFinished():
                self._end(body.run_id)
            case _:
                pass

    def _respond(self, body: MessageAppended) -> None:
        run = self.open_run
        assert run is not None
        run.turn = body.turn
        run.response = body
        run.started = {}
        run.completed = {}
        run.usage = run.usage.plus(body.usage)
        self.messages.append(body.message)

    def _end(self, run_id: str) -> None:
        run = self.open_run
        if run is None or run.run_id != run_id:
            return
        self.open_run = None
        for index in run.calls_without_result():
            assert run.response is not None
            call = run.response.message.tool_calls[index]
            self.messages.append(
                ToolMessage(
                    tool_call_id=call.id,
                    tool_name=call.name,
                    content=ABANDONED_CALL,
                    is_error=True,
                )
            )
