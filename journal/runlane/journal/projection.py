"""The records of a branch folded into what is to be known of it. Pure: same path, same state."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field

from msgspec.structs import replace

from runlane.journal.record_order import RunStage, advance
from runlane.journal.wire.bodies import RunBody
from runlane.journal.wire.messages import ContextMessage, ToolMessage, UserMessage
from runlane.journal.wire.records import (
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
from runlane.journal.wire.tree import (
    Checkpoint,
    CompactionApplied,
    HistoryImported,
    LastRun,
    MessagesAppended,
    OpenRunState,
    SteeringApplied,
)

ABANDONED_CALL = "the run ended before this call had a result; whether it happened is unknown"


@dataclass(slots=True)
class OpenRun:
    """A run that has begun and has not ended.

    Attributes:
        run_id: The run.
        base_id: Record id of the record before its first one; empty if there is none.
        turn: Model responses so far.
        response: The last one; None before the first, and at a checkpoint between two turns.
        started: Intents for its tool calls, by place in the response.
        completed: Results of its tool calls, by place in the response.
        usage: Tokens so far.
    """

    run_id: str
    base_id: str = ""
    turn: int = 0
    response: MessageAppended | None = None
    started: dict[int, ToolStarted] = field(default_factory=dict[int, ToolStarted])
    completed: dict[int, ToolCompleted] = field(default_factory=dict[int, ToolCompleted])
    usage: RunUsage = field(default_factory=RunUsage)

    def calls_without_result(self) -> list[int]:
        """Return the places of calls in the last response that have no result yet."""
        calls = self.response.message.tool_calls if self.response else ()
        return [index for index in range(len(calls)) if index not in self.completed]

    @property
    def in_turn(self) -> bool:
        """Whether the last response is yet to be acted on."""
        if self.response is None:
            return False
        return not self.response.message.tool_calls or bool(self.calls_without_result())


class Projection:
    """A branch as of one of its records.

    Attributes:
        messages: The transcript as a model reads it, oldest first. Every tool call of an ended
            run has a result in it: where the journal has none, one that says so.
        open_run: The run that has begun and not ended.
        last_run: The run that ended last.
    """

    def __init__(self, path: Iterable[Record] = ()) -> None:
        """Fold a path: the records that lead to one, oldest first, from a checkpoint or the root.

        Raises:
            RecordOrderError: A record does not fit the run that it belongs to.
        """
        self.messages: list[ContextMessage] = []
        self.open_run: OpenRun | None = None
        self.last_run: LastRun | None = None
        for record in path:
            self.add(record.body, record.parent_id)

    def add(self, body: AnyBody, parent_id: str = "") -> None:
        """Fold in the next record, whose parent is the one before it.

        Raises:
            RecordOrderError: It does not fit the run that it belongs to.
        """
        match body:
            case RunBody():
                self._check_order(body.run_id, KIND_OF[type(body)])
                self._add_of_run(body, parent_id)
            case Checkpoint() | CompactionApplied() | HistoryImported():
                self._restore(body)
            case _:
                pass

    def checkpoint(self) -> Checkpoint | None:
        """Return what stands for all records so far; None in the middle of a turn."""
        run = self.open_run
        if run is not None and run.in_turn:
            return None
        return Checkpoint(
            messages=tuple(self.messages), last_run=self.last_run, open_run=self._open_state()
        )

    def with_state(self, body: CompactionApplied) -> CompactionApplied:
        """Return a compaction that is applied here, with the state of the branch."""
        return replace(body, last_run=self.last_run, open_run=self._open_state())

    def after(self, bodies: Iterable[AnyBody]) -> "Projection":
        """Return a projection with further records, and leave this one as it is."""
        further = copy(self)
        further.messages = list(self.messages)
        further.open_run = copy(self.open_run)
        if further.open_run is not None:
            further.open_run.started = dict(further.open_run.started)
            further.open_run.completed = dict(further.open_run.completed)
        for body in bodies:
            further.add(body)
        return further

    def _add_of_run(self, body: RunBody, parent_id: str) -> None:
        match body:
            case RunStarted():
                self.open_run = OpenRun(body.run_id, parent_id)
                self.messages.append(body.message)
            case RunContinued():
                self.open_run = OpenRun(body.run_id, parent_id)
            case MessageAppended():
                self._respond(body)
            case MessagesAppended():
                self.messages += body.messages
            case SteeringApplied():
                self.messages.append(UserMessage(body.content))
            case ToolStarted() if self.open_run:
                self.open_run.started[body.index] = body
            case ToolCompleted() if self.open_run:
                self.open_run.completed[body.index] = body
                self.messages.append(body.message)
            case RunFinished():
                self._end(body)
            case _:
                pass

    def _check_order(self, run_id: str, kind: str) -> None:
        run = self.open_run
        stage = RunStage.QUEUED if run is None else RunStage.RUNNING
        if run is not None and run.run_id != run_id:
            stage = RunStage.ABSENT
        advance(stage, kind, run_id)

    def _respond(self, body: MessageAppended) -> None:
        run = self.open_run
        assert run is not None
        run.turn = body.turn
        run.response = body
        run.started = {}
        run.completed = {}
        run.usage = run.usage.plus(body.usage)
        self.messages.append(body.message)

    def _end(self, body: RunFinished) -> None:
        run, self.open_run = self.open_run, None
        if run is None:
            return
        self.last_run = LastRun(body.run_id, body.result.stop_reason)
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

    def _open_state(self) -> OpenRunState | None:
        run = self.open_run
        if run is None:
            return None
        return OpenRunState(run_id=run.run_id, base_id=run.base_id, turn=run.turn, usage=run.usage)

    def _restore(self, body: Checkpoint | CompactionApplied | HistoryImported) -> None:
        self.messages = list(body.messages)
        if isinstance(body, HistoryImported):
            self.last_run, self.open_run = body.last_run, None
            return
        # The state that comes with it is news only where the path begins.
        self.last_run = self.last_run or body.last_run
        state = body.open_run
        if self.open_run is None and state is not None:
            self.open_run = OpenRun(state.run_id, state.base_id, turn=state.turn, usage=state.usage)
