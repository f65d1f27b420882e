"""Long sessions, written as workers write them: run by run, through the same transitions.

A run answers one turn of the conversation and leaves seven records: it was queued and started, the
model called a tool, the tool was started and completed, the model answered, the run finished. A
checkpoint is written at the end of a run when one is due, as by a worker. And since a model reads
only so much, the transcript is compacted every 30 turns: a summary takes the place of all but the
last 10 of them, so that between 10 and 40 turns (40 to 170 KB) are in the context.
"""

from typing import Final

from bench.conversation import TOOL, Turn, conversation
from bench.lane import AGENT, RETRY_S, ask, take
from runlane.journal.checkpoints import Growth
from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.path import read_path
from runlane.journal.projection import Projection
from runlane.journal.transitions import append, checkout, finish
from runlane.journal.wire.codec import encode_body
from runlane.journal.wire.messages import (
    AssistantMessage,
    ModelToolCall,
    ModelUsage,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.records import (
    AnyBody,
    MessageAppended,
    RunFinished,
    RunStarted,
    ToolCompleted,
    ToolOutcome,
    ToolStarted,
)
from runlane.journal.wire.results import AgentRunResult, RunUsage, StopReason
from runlane.journal.wire.tree import CompactionApplied, SummaryEntry

RECORDS_PER_TURN: Final = 7
_MESSAGES_PER_TURN: Final = 4
_COMPACT_EVERY: Final = 30
_KEPT_TURNS: Final = 10
_USAGE: Final = ModelUsage(10_000, 200)
_TOTAL: Final = RunUsage(20_000, 400, request_count=2, reported_request_count=2)


class History:
    """Writes one session's `main` branch, and holds it projected as it goes.

    Attributes:
        session_id: The session.
        head: Record id of the last record of the branch.
        turns: Turns so far.
        payload_bytes: Size of what was said in them.
    """

    def __init__(self, partition: Partition, session_id: str) -> None:
        self.session_id = session_id
        self.head = ""
        self.turns = 0
        self.payload_bytes = 0
        self._partition = partition
        self._conversation = conversation()
        self._projection = Projection()
        self._growth = Growth()

    @property
    def records(self) -> int:
        """Records of the session so far, those of the control chain included."""
        return int(self.head.partition("-")[0] or 0)

    async def grow(self, records: int) -> None:
        """Write turns until the session has at least so many records."""
        while self.records < records:
            await self.write_turn()

    async def write_turn(self) -> None:
        """Write the next turn of the conversation as a run of its own."""
        turn = next(self._conversation)
        run_id = await ask(self._partition, self.session_id, turn.user)
        lease = (await take(self._partition, run_id)).lease
        await checkout(self._partition, lease, page=1)
        if self.turns and not self.turns % _COMPACT_EVERY:
            compaction = self._projection.with_state(self._compaction())
            await self._append(lease, compaction)
            self._growth.restart(_size(compaction))
        start, call, outcome, answer, result = _records(lease, turn)
        await self._append(lease, start)
        await self._append(lease, *call)
        await self._append(lease, outcome)
        await self._finish(lease, answer, result)
        self.turns += 1
        self.payload_bytes += turn.payload_bytes

    async def catch_up(self) -> None:
        """Read what somebody else has written meanwhile."""
        keys = self._partition.keys
        head: bytes = await self._partition.call("HGET", keys.heads(self.session_id), MAIN_BRANCH)
        self.head = head.decode()
        path = await read_path(self._partition, self.session_id, self.head)
        self._projection = path.project()
        self._growth = Growth(path.distance, path.size, path.checkpoint_size)

    async def _append(self, lease: Lease, *bodies: AnyBody) -> None:
        appended = await append(
            self._partition, lease, bodies, head=self.head, progress=True, retry_s=RETRY_S
        )
        for body in bodies:
            self._projection.add(body, self.head)
        self._move(appended.head, sum(len(each.data) for each in appended.written))

    async def _finish(self, lease: Lease, answer: MessageAppended, result: AgentRunResult) -> None:
        end = RunFinished(run_id=lease.run_id, branch_id=lease.branch_id, result=result)
        self._projection = self._projection.after([answer, end])
        checkpoint = self._projection.checkpoint() if self._growth.due else None
        finished = await finish(
            self._partition,
            lease,
            result,
            entries=[answer],
            head=self.head,
            retry_s=RETRY_S,
            checkpoint=checkpoint,
        )
        self._move(finished.head, _size(answer) + _size(end))
        if checkpoint is not None:
            self._growth.restart(_size(checkpoint))

    def _move(self, head: str, size: int) -> None:
        before = self.records
        self.head = head
        self._growth.add(distance=self.records - before, size=size)

    def _compaction(self) -> CompactionApplied:
        messages = self._projection.messages
        kept = messages[-_KEPT_TURNS * _MESSAGES_PER_TURN :]
        summary = SummaryEntry(
            content=next(self._conversation).answer,
            source="bench",
            history_start_index=0,
            first_kept_index=len(messages) - len(kept),
            summarized_message_count=self.turns * _MESSAGES_PER_TURN - len(kept),
            tokens_before=len(messages) * 250,
        )
        return CompactionApplied(
            operation_id=f"compaction-{self.turns}",
            summary=summary,
            messages=(SystemMessage(summary.content), *kept),
        )


def _records(
    lease: Lease, turn: Turn
) -> tuple[RunStarted, tuple[AnyBody, AnyBody], ToolCompleted, MessageAppended, AgentRunResult]:
    """Return what the worker of a run writes for a turn, in order."""
    run_id, attempt = lease.run_id, lease.attempt
    call = ModelToolCall(turn.call_id, TOOL, turn.arguments)
    started = RunStarted(
        run_id=run_id,
        attempt=attempt,
        agent=AGENT,
        version="1",
        worker_id="bench-1",
        message=UserMessage(turn.user),
    )
    called = MessageAppended(
        run_id=run_id,
        attempt=attempt,
        turn=1,
        message=AssistantMessage(turn.words, (call,)),
        usage=_USAGE,
    )
    intent = ToolStarted(
        run_id=run_id,
        attempt=attempt,
        turn=1,
        index=0,
        call=call,
        operation_key=f"{run_id}:1:0",
        effect="read_only",
    )
    completed = ToolCompleted(
        run_id=run_id,
        attempt=attempt,
        turn=1,
        index=0,
        outcome=ToolOutcome.OK,
        message=ToolMessage(turn.call_id, TOOL, turn.result),
    )
    answered = MessageAppended(
        run_id=run_id,
        attempt=attempt,
        turn=2,
        message=AssistantMessage(turn.answer),
        usage=_USAGE,
    )
    reason = StopReason.TEXT_RESPONSE
    result = AgentRunResult(reason.status, reason, turns=2, output=turn.answer, usage=_TOTAL)
    return started, (called, intent), completed, answered, result


def _size(body: AnyBody) -> int:
    return len(encode_body(body)[1])
