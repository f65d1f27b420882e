"""The tool calls of one response: intent, call, result, in source order; also after a crash.

What the journal says about a call decides what happens to it:

- it has a result: it is used;
- it has not begun: it runs;
- it has begun, and repeating it is harmless: it runs again with the same operation key;
- it has begun, and it has side effects: the handler may know what became of it (`reconcile`),
  else the agent's `RecoveryPolicy` decides. It never runs a second time.
"""

import json
from collections.abc import Mapping
from typing import Any

from runlane.journal.kill_points import kill_point
from runlane.journal.wire.events import EventKind
from runlane.journal.wire.messages import ModelToolCall, ToolMessage
from runlane.journal.wire.records import AnyBody, MessageAppended, ToolCompleted, ToolStarted
from runlane.journal.wire.results import StopReason
from runlane.worker.app import Agent
from runlane.worker.loop.ending import Ending
from runlane.worker.loop.session import RunSession
from runlane.worker.policy import RecoveryPolicy
from runlane.worker.tools import (
    PreparedCall,
    ToolContext,
    ToolControl,
    ToolEffect,
    ToolFailure,
    ToolProgressReporter,
    ToolProgressUpdate,
    ToolResult,
)
from runlane.worker.tools.texts import json_text, storable

_CONTROL_ENDS: Mapping[ToolControl, StopReason] = {
    ToolControl.COMPLETE: StopReason.TOOL_COMPLETION,
    ToolControl.REJECT: StopReason.TOOL_REJECTED,
    ToolControl.CANCEL: StopReason.TOOL_CANCELLED,
}


async def settle_calls(
    agent: Agent, session: RunSession, response: MessageAppended, *, committed: bool = False
) -> Ending | None:
    """Give every tool call of a response its result; return an ending if one of them ends the run.

    Args:
        agent: The agent.
        session: The run.
        response: The response; it is journaled together with the first intent.
        committed: The response was journaled by an earlier attempt.

    Raises:
        WriteRefusedError: The lease was lost.
    """
    return await _Turn(agent, session, response, committed=committed).settle()


class _Turn:
    """Works through one response; `pending` is journaled with the next commit."""

    def __init__(
        self, agent: Agent, session: RunSession, response: MessageAppended, *, committed: bool
    ) -> None:
        self.agent = agent
        self.session = session
        self.response = response
        run = session.projection.open_run
        assert run is not None
        self.interrupted = dict(run.started) if committed else {}
        self.todo = (
            run.calls_without_result() if committed else [*range(len(response.message.tool_calls))]
        )
        self.pending: list[AnyBody] = [] if committed else [response]
        self.resumed = committed

    async def settle(self) -> Ending | None:
        while self.todo:
            index = self.todo.pop(0)
            call = self.response.message.tool_calls[index]
            result = await self._result(index, call)
            if isinstance(result, Ending):
                return result
            result = await self._kept(result)
            self.pending.append(self._completed(index, call, result))
            if result.control is not ToolControl.CONTINUE:
                return self._end(_CONTROL_ENDS[result.control], output=result.output)
            if self.session.cancellation.cancelled:
                return self._end(StopReason.EXTERNAL_ABORT, error=self.session.cancellation.reason)
        await self._commit()
        return None

    async def _result(self, index: int, call: ModelToolCall) -> ToolResult | Ending:
        prepared = self.agent.tools.prepare(call)
        if self._may_have_happened(index, prepared):
            return await self._recover(index, call, prepared)
        if isinstance(prepared, ToolFailure):
            return prepared.result
        if index not in self.interrupted:
            self.pending.append(self._started(index, call, prepared))
        await self._commit()
        if self.session.cancellation.cancelled:
            return ToolResult.cancelled(call.name, self.session.cancellation.reason)
        if prepared.effect is ToolEffect.SIDE_EFFECTING:
            self.session.check_lease()
        result = await self.agent.tools.execute(prepared, self._context(index, call))
        kill_point("after_tool_ran")
        return result

    async def _kept(self, result: ToolResult) -> ToolResult:
        """Keep the whole content of a result that was cut."""
        if result.oversize is None:
            return result
        ref = await self.session.keep(*result.oversize.first(self.session.blob_bytes_max))
        kill_point("after_content_kept")
        return result.kept_as(ref)

    def _may_have_happened(self, index: int, prepared: PreparedCall | ToolFailure) -> bool:
        started = self.interrupted.get(index)
        side_effecting = prepared.effect is ToolEffect.SIDE_EFFECTING
        if started is not None:
            return side_effecting or started.effect == ToolEffect.SIDE_EFFECTING
        intent_may_be_lost = self.resumed and self.session.server_changed
        return intent_may_be_lost and side_effecting and isinstance(prepared, PreparedCall)

    async def _recover(
        self, index: int, call: ModelToolCall, prepared: PreparedCall | ToolFailure
    ) -> ToolResult | Ending:
        await self._commit()
        if isinstance(prepared, PreparedCall):
            known = await self.agent.tools.reconcile(prepared, self._context(index, call))
            if known is not None:
                return known
        unknown = ToolResult.unknown(call.name)
        if self.agent.recovery_policy is RecoveryPolicy.REPORT:
            return unknown
        self.pending.append(self._completed(index, call, unknown))
        return self._end(
            StopReason.RUNTIME_ERROR,
            error=f"the outcome of {call.name} ({self._key(index)}) is unknown after a crash",
        )

    async def _commit(self) -> None:
        if not self.pending:
            return
        bodies, self.pending = self.pending, []
        await self.session.commit(*bodies)
        if self.response in bodies:
            kill_point("after_message_appended")
        elif any(isinstance(body, ToolStarted) for body in bodies):
            kill_point("after_tool_intent")

    def _end(
        self, reason: StopReason, *, output: str | None = None, error: str | None = None
    ) -> Ending:
        """End the run here; calls that had no turn get a result that says so."""
        for index in self.todo:
            call = self.response.message.tool_calls[index]
            skipped = ToolResult.cancelled(call.name, f"skipped: the run ended ({reason})")
            self.pending.append(self._completed(index, call, skipped))
        return Ending(
            reason,
            output=output,
            error=error,
            last=tuple(self.pending),
            turn=self.response.turn,
        )

    def _started(self, index: int, call: ModelToolCall, prepared: PreparedCall) -> ToolStarted:
        return ToolStarted(
            run_id=self.session.run_id,
            attempt=self.session.attempt,
            turn=self.response.turn,
            index=index,
            call=call,
            operation_key=self._key(index),
            effect=prepared.effect,
        )

    def _completed(self, index: int, call: ModelToolCall, result: ToolResult) -> ToolCompleted:
        return ToolCompleted(
            run_id=self.session.run_id,
            attempt=self.session.attempt,
            turn=self.response.turn,
            index=index,
            outcome=result.outcome,
            message=ToolMessage(
                tool_call_id=call.id,
                tool_name=call.name,
                content=result.content,
                is_error=result.is_error,
            ),
            full=result.full,
        )

    def _context(self, index: int, call: ModelToolCall) -> ToolContext:
        turn = self.response.turn

        async def heard(update: ToolProgressUpdate) -> None:
            payload: dict[str, Any] = {
                "tool_call_id": call.id,
                "tool_name": call.name,
                "update": json.loads(storable(json_text(update))),
            }
            self.session.emit(EventKind.TOOL_PROGRESSED, turn, payload)

        return ToolContext(
            run_id=self.session.run_id,
            session_id=self.session.session_id,
            agent=self.session.agent_name,
            attempt=self.session.attempt,
            turn=turn,
            tool_call_id=call.id,
            operation_key=self._key(index),
            cancellation=self.session.cancellation,
            progress=ToolProgressReporter(heard, self.session.cancellation),
        )

    def _key(self, index: int) -> str:
        return f"{self.session.run_id}:{self.response.turn}:{index}"
