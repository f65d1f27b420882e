"""A worker that does what a test tells it to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runlane.journal import transitions
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.transitions.register import WorkerInfo
from runlane.journal.wire.control import ControlInput
from runlane.journal.wire.events import Event, EventKind
from runlane.journal.wire.messages import (
    AssistantMessage,
    ModelToolCall,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.records import (
    AnyBody,
    AttemptCause,
    AttemptStarted,
    MessageAppended,
    RunStarted,
    ToolCompleted,
    ToolOutcome,
    ToolStarted,
)
from runlane.journal.wire.results import AgentRunResult, StopReason
from runlane.journal.wire.tree import SteeringApplied

RETRY_S = 30.0


@dataclass
class HeldRun:
    """A run that the worker has begun."""

    partition: Partition
    lease: Lease
    head: str
    inputs: tuple[ControlInput, ...] = ()
    offset: int = 0

    async def append(self, *entries: AnyBody | Event) -> None:
        appended = await transitions.append(
            self.partition, self.lease, entries, head=self.head, progress=True, retry_s=RETRY_S
        )
        self.head, self.inputs = appended.head, appended.inputs

    async def hear(self, turn: int = 1) -> None:
        """Let the model hear what was said to the run by the last append."""
        await self.append(
            *(
                SteeringApplied(
                    run_id=self.lease.run_id,
                    input_id=each.input_id,
                    content=each.content,
                    target_turn=turn,
                )
                for each in self.inputs
            )
        )

    async def say(self, turn: int, content: str, *calls: ModelToolCall) -> None:
        self.offset = 0
        await self.append(self.message(turn, content, *calls))

    def message(self, turn: int, content: str, *calls: ModelToolCall) -> MessageAppended:
        return MessageAppended(
            run_id=self.lease.run_id,
            attempt=self.lease.attempt,
            turn=turn,
            message=AssistantMessage(content, tool_calls=calls),
        )

    async def use_tool(self, turn: int, call: ModelToolCall) -> None:
        place: dict[str, Any] = {
            "run_id": self.lease.run_id,
            "attempt": self.lease.attempt,
            "turn": turn,
            "index": 0,
        }
        started = ToolStarted(
            **place,
            call=call,
            operation_key=f"{self.lease.run_id}:{turn}:0",
            effect="read_only",
        )
        answer = ToolMessage(tool_call_id=call.id, tool_name=call.name, content="42")
        completed = ToolCompleted(**place, outcome=ToolOutcome.OK, message=answer)
        await self.append(started, completed)

    async def stream(self, turn: int, *deltas: str) -> None:
        for text in deltas:
            event = self.event(
                EventKind.ASSISTANT_TEXT_DELTA, turn, {"delta": text, "offset": self.offset}
            )
            self.offset += len(text)
            await transitions.publish(self.partition, self.lease, [event], text=text, turn=turn)

    def event(self, kind: EventKind, turn: int, payload: dict[str, object]) -> Event:
        return Event(
            session_id=self.lease.session_id,
            branch_id=self.lease.branch_id,
            run_id=self.lease.run_id,
            kind=kind,
            at_ms=1,
            attempt=self.lease.attempt,
            turn=turn,
            payload=payload,
            count=1,
        )

    async def finish(
        self,
        output: str = "done",
        *entries: AnyBody,
        stop_reason: StopReason = StopReason.TEXT_RESPONSE,
    ) -> None:
        result = AgentRunResult(
            status=stop_reason.status,
            stop_reason=stop_reason,
            turns=1,
            output=output if stop_reason is StopReason.TEXT_RESPONSE else None,
            error=None if stop_reason is StopReason.TEXT_RESPONSE else output,
        )
        await transitions.finish(
            self.partition, self.lease, result, entries=entries, head=self.head, retry_s=RETRY_S
        )


@dataclass
class HandWorker:
    """Registered for its agents; carries on what the test has it claim."""

    partition: Partition
    agents: dict[str, str]
    worker_id: str = "hand"

    async def register(self, *, lease_ms: int = 600_000) -> None:
        info = WorkerInfo(host="h", pid=1, agents=self.agents, max_runs=10)
        await transitions.register(
            self.partition, worker_id=self.worker_id, lease_ms=lease_ms, info=info
        )

    async def claim(self, queues: Sequence[str] = (), *, lease_ms: int = 600_000) -> list[Lease]:
        claim = await transitions.claim(
            self.partition,
            worker_id=self.worker_id,
            queues=queues or tuple(self.agents),
            slots=100,
            lease_ms=lease_ms,
            crashes_max=3,
            crashes_total_max=10,
        )
        return [run.lease for run in claim.runs]

    async def begin(self, queues: Sequence[str] = (), *, lease_ms: int = 600_000) -> HeldRun:
        """Claim the one run that is due and begin it, or take it over."""
        (lease,) = await self.claim(queues, lease_ms=lease_ms)
        return await self.begin_with(lease)

    async def begin_with(self, lease: Lease) -> HeldRun:
        checkout = await transitions.checkout(self.partition, lease, page=1)
        held = HeldRun(self.partition, lease, checkout.head)
        await held.append(self._start(lease))
        return held

    async def complete(self, output: str = "done") -> HeldRun:
        """Carry out the one run that is due, from claim to finish."""
        (lease,) = await self.claim()
        return await self.carry_out(lease, output)

    async def carry_out(self, lease: Lease, output: str) -> HeldRun:
        held = await self.begin_with(lease)
        await held.finish(output, held.message(1, output))
        return held

    def _start(self, lease: Lease) -> AnyBody:
        if lease.cause is AttemptCause.CRASH:
            return AttemptStarted(
                run_id=lease.run_id,
                attempt=lease.attempt,
                worker_id=self.worker_id,
                cause=lease.cause,
            )
        return RunStarted(
            run_id=lease.run_id,
            attempt=lease.attempt,
            agent="support",
            version="1",
            worker_id=self.worker_id,
            message=UserMessage("hi"),
        )
