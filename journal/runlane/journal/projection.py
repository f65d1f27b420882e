"""The records of a branch folded into what is to be known of it. Pure: same path, same state."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field

from msgspec.structs import asdict, replace

from runlane.journal.record_order import RunStage, advance
from runlane.journal.repeats import count_repeats
from runlane.journal.transcript import ABANDONED_CALL, missing_result
from runlane.journal.wire.bodies import RunBody
from runlane.journal.wire.messages import ContextMessage, UserMessage
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
    Repeated,
    Spent,
    SteeringApplied,
)


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
        task: What it was asked to do; None for one that continues.
        tool_calls: Tool calls that were asked for so far.
        without_tools: Responses in a row without a tool call, and nobody spoke after them.
        repeated: The last call that was asked for, and how often in a row.
        repeated_before: The same as of the response before the last one.
        counters: What middlewares have counted.
        first_message: Place in `messages` where the run began.
        heard: Ids of what was said to it since its last response.
    """

    run_id: str
    base_id: str = ""
    turn: int = 0
    response: MessageAppended | None = None
    started: dict[int, ToolStarted] = field(default_factory=dict[int, ToolStarted])
    completed: dict[int, ToolCompleted] = field(default_factory=dict[int, ToolCompleted])
    usage: RunUsage = field(default_factory=RunUsage)
    task: str | None = None
    tool_calls: int = 0
    without_tools: int = 0
    repeated: Repeated = field(default_factory=Repeated)
    repeated_before: Repeated = field(default_factory=Repeated)
    counters: dict[str, int] = field(default_factory=dict[str, int])
    first_message: int = 0
    heard: tuple[str, ...] = ()

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
        spent: What the whole history has cost.
        foreign: Whether messages are among `messages` that no run here wrote: calls may lack a
            result there, and results a call.
    """

    def __init__(self, path: Iterable[Record] = ()) -> None:
        """Fold a path: the records that lead to one, oldest first, from a checkpoint or the root.

        Raises:
            RecordOrderError: A record does not fit the run that it belongs to.
        """
        self.messages: list[ContextMessage] = []
        self.open_run: OpenRun | None = None
        self.last_run: LastRun | None = None
        self.spent = Spent()
        self.foreign = False
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
            messages=tuple(self.messages),
            last_run=self.last_run,
            open_run=self._open_state(),
            spent=self.spent,
            foreign=self.foreign,
        )

    def with_state(self, body: CompactionApplied) -> CompactionApplied:
        """Return a compaction that is applied here, with the state of the branch."""
        return replace(body, last_run=self.last_run, open_run=self._open_state(), spent=self.spent)

    def after(self, bodies: Iterable[AnyBody]) -> "Projection":
        """Return a projection with further records, and leave this one as it is."""
        further = copy(self)
        further.messages = list(self.messages)
        further.open_run = copy(self.open_run)
        if further.open_run is not None:
            further.open_run.started = dict(further.open_run.started)
            further.open_run.completed = dict(further.open_run.completed)
            further.open_run.counters = dict(further.open_run.counters)
        for body in bodies:
            further.add(body)
        return further

    def _add_of_run(self, body: RunBody, parent_id: str) -> None:
        match body:
            case RunStarted():
                self._open(OpenRun(body.run_id, parent_id, task=body.message.content))
                self.messages.append(body.message)
            case RunContinued():
                self._open(OpenRun(body.run_id, parent_id))
            case MessageAppended():
                self._respond(body)
            case MessagesAppended():
                self.messages += body.messages
                self.foreign = True
            case SteeringApplied():
                self.messages.append(UserMessage(body.content))
                if self.open_run:
                    self.open_run.without_tools = 0
                    self.open_run.heard += (body.input_id,)
            case ToolStarted() if self.open_run:
                self.open_run.started[body.index] = body
                self._count(self.open_run, body)
            case ToolCompleted() if self.open_run:
                self.open_run.completed[body.index] = body
                self.messages.append(body.message)
                self._count(self.open_run, body)
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
        run.heard = ()
        run.started = {}
        run.completed = {}
        run.usage = run.usage.plus(body.usage)
        calls = body.message.tool_calls
        run.tool_calls += len(calls)
        run.without_tools = 0 if calls else run.without_tools + 1
        run.repeated_before = run.repeated
        _, run.repeated = count_repeats(run.repeated, calls)
        self.spent = Spent(
            usage=self.spent.usage.plus(body.usage),
            turns=self.spent.turns + 1,
            tool_calls=self.spent.tool_calls + len(calls),
        )
        self.messages.append(body.message)

    def _open(self, run: OpenRun) -> None:
        run.first_message = len(self.messages)
        self.open_run = run

    @staticmethod
    def _count(run: OpenRun, body: ToolStarted | ToolCompleted) -> None:
        for name in body.counted:
            run.counters[name] = run.counters.get(name, 0) + 1

    def _end(self, body: RunFinished) -> None:
        run, self.open_run = self.open_run, None
        if run is None:
            return
        self.last_run = LastRun(body.run_id, body.result.stop_reason)
        for index in run.calls_without_result():
            assert run.response is not None
            call = run.response.message.tool_calls[index]
            self.messages.append(missing_result(call, ABANDONED_CALL))

    def _open_state(self) -> OpenRunState | None:
        run = self.open_run
        if run is None:
            return None
        kept = {name: getattr(run, name) for name in OpenRunState.__struct_fields__}
        return replace(OpenRunState(**kept), counters=dict(run.counters))

    def _restore(self, body: Checkpoint | CompactionApplied | HistoryImported) -> None:
        self.messages = list(body.messages)
        if isinstance(body, HistoryImported):
            self.foreign = True
            self.last_run, self.open_run, self.spent = body.last_run, None, Spent()
            return
        self.foreign = True if isinstance(body, CompactionApplied) else body.foreign
        # The state that comes with it is news only where the path begins.
        self.last_run = self.last_run or body.last_run
        if not self.spent.turns:
            self.spent = body.spent
        if self.open_run is None and body.open_run is not None:
            state = asdict(body.open_run)
            self.open_run = OpenRun(**state, repeated_before=body.open_run.repeated)
            self.open_run.counters = dict(self.open_run.counters)
        if isinstance(body, CompactionApplied) and self.open_run is not None:
            self.open_run.first_message = 0
