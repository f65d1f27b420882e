"""The tool calls of one response, in source order; also after a crash.

Read-only calls that stand side by side may run at the same time; anything else has a batch of its
own. Whatever happens, each call gets exactly one result, and results are journaled in source order.
"""

import asyncio
from collections.abc import Mapping

import structlog

from runlane.journal.errors import WriteRefusedError
from runlane.journal.kill_points import kill_point
from runlane.journal.repeats import count_repeats
from runlane.journal.wire.records import AnyBody, MessageAppended, ToolStarted
from runlane.journal.wire.results import StopReason
from runlane.worker.app import Agent
from runlane.worker.behavior import BehaviorHookError
from runlane.worker.control import AgentCancelledError
from runlane.worker.loop.call import Caller
from runlane.worker.loop.ending import Ending
from runlane.worker.loop.guards import reached_tool_calls, remaining_s
from runlane.worker.loop.moments import Moments, steering_of
from runlane.worker.loop.session import HandBackSignal, RunSession
from runlane.worker.loop.verdict import NEWS, Settled, Verdict
from runlane.worker.tools import PreparedCall, ToolControl, ToolEffect, ToolResult
from runlane.worker.tools.execution import asked_to_stop
from runlane.worker.tools.texts import describe

logger = structlog.get_logger(__name__)

_CONTROL_ENDS: Mapping[ToolControl, StopReason] = {
    ToolControl.COMPLETE: StopReason.TOOL_COMPLETION,
    ToolControl.REJECT: StopReason.TOOL_REJECTED,
    ToolControl.CANCEL: StopReason.TOOL_CANCELLED,
}


async def settle_calls(
    agent: Agent,
    session: RunSession,
    moments: Moments,
    response: MessageAppended,
    *,
    committed: bool = False,
) -> Ending | None:
    """Give every tool call of a response its result; return an ending if one of them ends the run.

    Args:
        agent: The agent.
        session: The run.
        moments: Its hooks.
        response: The response; it is journaled together with the first intent, unless somebody
            is to look at it before.
        committed: The response was journaled by an earlier attempt.

    Raises:
        WriteRefusedError: The lease was lost.
    """
    return await _Calls(agent, session, moments, response, committed=committed).settle()


class _Calls:
    """Works through one response; `pending` is journaled with the next commit."""

    def __init__(
        self,
        agent: Agent,
        session: RunSession,
        moments: Moments,
        response: MessageAppended,
        *,
        committed: bool,
    ) -> None:
        run = session.projection.open_run
        assert run is not None
        calls = response.message.tool_calls
        self.agent = agent
        self.session = session
        self.moments = moments
        self.response = response
        self.untouched = not committed or not (run.started or run.completed)
        self.todo = run.calls_without_result() if committed else [*range(len(calls))]
        self.pending: list[AnyBody] = [] if committed else [response]
        before = run.repeated_before if committed else run.repeated
        self.repeats, _ = count_repeats(before, calls)
        counted = len(calls) if committed else 0
        self.calls_before = run.tool_calls - counted
        self.history_before = session.projection.spent.tool_calls - counted
        # Where nobody is to be asked before a call, what came before travels with its intent.
        self.hurried = agent.tools.immediate and not moments.wants_calls and not committed
        self.caller = Caller(
            agent, session, moments, response, committed=committed, begin=self.begin
        )
        self.writing = asyncio.Lock()
        self.together = False
        self.refused: WriteRefusedError | None = None

    async def settle(self) -> Ending | None:
        try:
            verdict = await self._look()
            while self.todo and verdict is None:
                batch = self._next_batch()
                together = len(batch) > 1
                verdict = await (self._together(batch) if together else self._alone(batch[0]))
        except (WriteRefusedError, HandBackSignal):
            raise
        except Exception as error:
            if asked_to_stop():
                raise asyncio.CancelledError from error
            logger.exception("run_failed", run_id=self.session.run_id)
            verdict = Verdict(StopReason.RUNTIME_ERROR, error=describe(error, typed=True))
        if verdict is not None:
            return await self._end_turn(verdict)
        await self.commit()
        return None

    async def begin(self, started: ToolStarted) -> None:
        """Journal the intent of a call, and all that came before it."""
        self.pending.append(started)
        if self.together:
            await asyncio.sleep(0)  # intents of the same moment travel in one commit
        await self.commit()

    async def commit(self) -> None:
        """Journal what is pending; return once it is."""
        if self.together:
            async with self.writing:
                await self._write()
        else:
            await self._write()

    async def _write(self) -> None:
        if self.refused is not None:
            raise self.refused
        if not self.pending:
            return
        bodies, self.pending = self.pending, []
        try:
            await self.session.commit(*bodies)
        except WriteRefusedError as error:
            self.refused = error
            raise
        if bodies[0] is self.response:
            kill_point("after_message_appended")
        elif isinstance(bodies[-1], ToolStarted):
            kill_point("after_tool_intent")

    async def _look(self) -> Verdict | None:
        """Let hooks see the response before anything comes of it."""
        if not (self.untouched and self.moments.wants_response):
            return None
        await self.commit()
        try:
            return Verdict.of(await self.moments.after_model(self.response))
        except BehaviorHookError as error:
            return Verdict(StopReason.RUNTIME_ERROR, error=str(error))
        except AgentCancelledError as error:
            return Verdict.aborted(error)

    def _next_batch(self) -> list[int]:
        """Return the calls at the head of `todo` that run at the same time."""
        policy = self.agent.runtime_policy
        if not policy.parallel_tool_calls:
            return self.todo[:1]
        batch: list[int] = []
        for index in self.todo:
            if batch and index != batch[-1] + 1:
                break
            prepared = self.caller.prepare(index)
            reads = isinstance(prepared, PreparedCall) and prepared.effect is ToolEffect.READ_ONLY
            if not reads or self.caller.may_have_happened(index, prepared):
                break
            batch.append(index)
        if any(self._refusal(index) for index in batch):
            return self.todo[:1]
        return batch or self.todo[:1]

    def _refusal(self, index: int) -> tuple[StopReason, str] | None:
        """Return why a call must not be made at all, and the run ends in its place."""
        policy = self.agent.runtime_policy
        if self.caller.has_begun(index):
            return None
        if remaining_s(policy, self.session.elapsed_s) == 0:
            return StopReason.DEADLINE_EXCEEDED, f"the run has had its {policy.budget.max_wall_s} s"
        if self.repeats[index] >= policy.max_repeated_tool_calls:
            name = self.response.message.tool_calls[index].name
            why = f"the same call of {name} came {self.repeats[index]} times in a row"
            return StopReason.REPEATED_TOOL_CALL, why
        number = index + 1
        spent = reached_tool_calls(policy, self.calls_before + number, self.history_before + number)
        return None if spent is None else (StopReason.BUDGET_EXCEEDED, spent)

    async def _alone(self, index: int) -> Verdict | None:
        if refusal := self._refusal(index):
            reason, why = refusal
            name = self.response.message.tool_calls[index].name
            verdict = Verdict(reason, error=why)
            settled = Settled(ToolResult.failed(name, f"refused: {why}"), verdict)
        else:
            if not self.hurried:
                await self.commit()
            settled = await self.caller.call(index)
        self.todo.remove(index)
        self.pending.append(self.caller.completed(index, settled.result))
        return self._verdict(settled)

    async def _together(self, batch: list[int]) -> Verdict | None:
        """Run read-only calls at the same time; return what they mean for those after them."""
        if not self.hurried:
            await self.commit()
        limit = self.agent.runtime_policy.max_parallel_tool_calls or len(batch)
        waiting = list(batch)
        running: dict[asyncio.Task[Settled], int] = {}
        settled: dict[int, Settled] = {}
        self.together = True
        try:
            while True:
                while waiting and len(running) < limit and not self._verdicts(settled):
                    index = waiting.pop(0)
                    running[asyncio.create_task(self.caller.call(index))] = index
                if not running:
                    return Verdict.combined(self._verdicts(settled))
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                settled |= {running.pop(task): task.result() for task in done}
                self._take(settled, more=bool(running))
                if running:
                    await self.commit()
        finally:
            self.together = False
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)

    def _take(self, settled: Mapping[int, Settled], *, more: bool) -> None:
        """Move results to `pending` as far as they stand side by side in source order.

        One that ends the turn waits for those that still run: a crash must not part them.
        """
        while self.todo and self.todo[0] in settled:
            index = self.todo[0]
            if more and self._verdict(settled[index]) is not None:
                return
            self.todo.pop(0)
            self.pending.append(self.caller.completed(index, settled[index].result))

    def _verdicts(self, settled: Mapping[int, Settled]) -> list[Verdict]:
        """Return what the calls mean that end the turn, in source order."""
        verdicts = (self._verdict(settled[index]) for index in sorted(settled))
        return [each for each in verdicts if each is not None]

    def _verdict(self, settled: Settled) -> Verdict | None:
        """Return what a call means for those after it; None if they are made."""
        if settled.verdict is not None:
            return settled.verdict
        result, cancellation = settled.result, self.session.cancellation
        if result.control != ToolControl.CONTINUE:
            return Verdict(_CONTROL_ENDS[result.control], result.output)
        if cancellation.cancelled:
            return Verdict(StopReason.EXTERNAL_ABORT, error=cancellation.reason)
        return None

    async def _end_turn(self, verdict: Verdict) -> Ending | None:
        """Give the calls that are not made a result that says so; end the turn, or the run too."""
        why = f"the run ended ({verdict.reason})" if verdict.reason else NEWS
        for index in self.todo:
            self.pending.append(self.caller.completed(index, self.caller.skipped(index, why)))
        turn = self.response.turn
        self.pending += steering_of(self.session.run_id, verdict.steer, turn + 1, "calls")
        if verdict.reason is None:
            await self.commit()
            return None
        output = verdict.output
        if verdict.reason is StopReason.BEHAVIOR_STOP and output is None:
            output = self.response.message.content
        return Ending(
            verdict.reason,
            output=output,
            error=verdict.error,
            last=tuple(self.pending),
            turn=turn,
        )
