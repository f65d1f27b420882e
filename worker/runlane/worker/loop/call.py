"""One tool call: hooks, middleware, intent, the tool itself; also after a crash.

What the journal says about a call decides what happens to it:

- it has a result: it is used;
- it has not begun: it runs;
- it has begun, and repeating it is harmless: it runs again with the same operation key;
- it has begun, and it has side effects: the handler may know what became of it (`reconcile`),
  else the agent's `RecoveryPolicy` decides. It never runs a second time.
"""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from runlane.journal.kill_points import kill_point
from runlane.journal.wire.events import EventKind
from runlane.journal.wire.messages import ModelToolCall, ToolMessage
from runlane.journal.wire.records import MessageAppended, ToolCompleted, ToolStarted
from runlane.journal.wire.results import StopReason
from runlane.worker.app import Agent
from runlane.worker.behavior import BehaviorHookError
from runlane.worker.control import AgentCancelledError
from runlane.worker.loop.guards import remaining_s
from runlane.worker.loop.moments import Moments
from runlane.worker.loop.session import RunSession
from runlane.worker.loop.verdict import NEWS, Settled, Verdict
from runlane.worker.policy import RecoveryPolicy
from runlane.worker.tools import (
    PreparedCall,
    ToolCallContext,
    ToolEffect,
    ToolFailure,
    ToolProgressReporter,
    ToolProgressUpdate,
    ToolResult,
    keep_content,
)
from runlane.worker.tools.texts import json_text, storable


class Caller:
    """Makes the calls of one response."""

    def __init__(
        self,
        agent: Agent,
        session: RunSession,
        moments: Moments,
        response: MessageAppended,
        *,
        committed: bool,
        begin: Callable[[ToolStarted], Awaitable[None]],
    ) -> None:
        run = session.projection.open_run
        assert run is not None
        self._agent = agent
        self._session = session
        self._moments = moments
        self._response = response
        self._begin = begin
        self._resumed = committed
        self._interrupted = dict(run.started) if committed else {}
        self._begun = set(self._interrupted)
        self._may_change = bool(agent.middlewares) or moments.wants_calls
        self._prepared: dict[int, PreparedCall | ToolFailure] = {}
        self._counts = dict(run.counters)
        self._counted: dict[int, dict[str, int]] = {}

    def prepare(self, index: int) -> PreparedCall | ToolFailure:
        """Return the call as it may be made, or why not."""
        if index not in self._prepared:
            tools = self._agent.tools
            prepared = tools.prepare(self._call(index))
            started = self._interrupted.get(index)
            if started and started.arguments is not None and isinstance(prepared, PreparedCall):
                prepared = tools.with_arguments(prepared, json.loads(started.arguments))
            self._prepared[index] = prepared
        return self._prepared[index]

    def may_have_happened(self, index: int, prepared: PreparedCall | ToolFailure) -> bool:
        """Return whether an earlier attempt may have made a call that must not be made twice."""
        started = self._interrupted.get(index)
        side_effecting = prepared.effect is ToolEffect.SIDE_EFFECTING
        if started is not None:
            return side_effecting or started.effect == ToolEffect.SIDE_EFFECTING
        intent_may_be_lost = self._resumed and self._session.server_changed
        return intent_may_be_lost and side_effecting and isinstance(prepared, PreparedCall)

    async def call(self, index: int) -> Settled:
        """Make a call; whatever comes of it, there is a result.

        Raises:
            WriteRefusedError: The lease was lost.
        """
        prepared = self.prepare(index)
        if self.may_have_happened(index, prepared):
            return await self._recover(index, prepared)
        if isinstance(prepared, PreparedCall) and index not in self._begun:
            decided = await self._ask_before(index, prepared)
            if isinstance(decided, Settled):
                return decided
            prepared = decided
        if isinstance(prepared, ToolFailure):
            return Settled(prepared.result)
        if self._session.cancellation.cancelled:
            return Settled(self._cancelled(index))
        try:
            result = await self._agent.tools.execute(
                prepared,
                self._context(index, prepared),
                begin=partial(self._journal_intent, index, prepared),
                remaining_s=remaining_s(self._agent.runtime_policy, self._session.elapsed_s),
            )
        except AgentCancelledError:  # between its intent and the call
            return Settled(self._cancelled(index))
        kill_point("after_tool_ran")
        return await self._ask_after(index, prepared, await self._kept(result))

    def completed(self, index: int, result: ToolResult) -> ToolCompleted:
        """Return the record of a result."""
        call = self._call(index)
        refused = index not in self._begun
        return ToolCompleted(
            run_id=self._session.run_id,
            attempt=self._session.attempt,
            turn=self._response.turn,
            index=index,
            outcome=result.outcome,
            message=ToolMessage(
                tool_call_id=call.id,
                tool_name=call.name,
                content=result.content,
                is_error=result.is_error,
                blocks=result.blocks,
            ),
            full=result.full,
            counted=tuple(sorted(self._counted.get(index, ()))) if refused else (),
        )

    async def _journal_intent(
        self, index: int, prepared: PreparedCall, context: ToolCallContext
    ) -> None:
        if index not in self._begun:
            changed = self._may_change and context.arguments != self._written(prepared)
            self._begun.add(index)
            await self._begin(
                ToolStarted(
                    run_id=self._session.run_id,
                    attempt=self._session.attempt,
                    turn=self._response.turn,
                    index=index,
                    call=prepared.call,
                    operation_key=self._key(index),
                    effect=prepared.effect,
                    arguments=storable(json_text(context.arguments)) if changed else None,
                    counted=tuple(sorted(self._counted.get(index, ()))),
                )
            )
            self._session.cancellation.raise_if_cancelled()
        if prepared.effect is ToolEffect.SIDE_EFFECTING:
            self._session.check_lease()

    def _written(self, prepared: PreparedCall) -> dict[str, Any]:
        """Return the arguments as the model wrote them."""
        written = self._agent.tools.prepare(prepared.call)
        return written.arguments if isinstance(written, PreparedCall) else {}

    async def _ask_before(
        self, index: int, prepared: PreparedCall
    ) -> PreparedCall | ToolFailure | Settled:
        name = prepared.definition.name
        try:
            decision = await self._moments.before_tool(self._response, prepared, self._key(index))
        except BehaviorHookError as error:
            blocked = ToolResult.failed(name, "tool blocked: a hook failed")
            return Settled(blocked, Verdict(StopReason.RUNTIME_ERROR, error=str(error)))
        except AgentCancelledError as error:
            return Settled(self._cancelled(index), Verdict.aborted(error))
        if decision is None:
            return prepared
        verdict = Verdict.of(decision)
        if decision.denied or decision.stops:
            reason = decision.reason or "denied"
            return Settled(ToolResult.failed(name, f"tool blocked: {reason}"), verdict)
        if verdict is not None:
            return Settled(ToolResult.cancelled(name, f"skipped: {NEWS}"), verdict)
        arguments = decision.arguments
        return (
            prepared if arguments is None else self._agent.tools.with_arguments(prepared, arguments)
        )

    async def _ask_after(self, index: int, prepared: PreparedCall, result: ToolResult) -> Settled:
        try:
            decision = await self._moments.after_tool(
                self._response, prepared, self._key(index), result
            )
        except BehaviorHookError as error:
            return Settled(result, Verdict(StopReason.RUNTIME_ERROR, error=str(error)))
        except AgentCancelledError as error:
            return Settled(result, Verdict.aborted(error))
        if decision is None:
            return Settled(result)
        if decision.prefix:
            result = result.prefixed(decision.prefix)
        if decision.denied:
            result = result.marked_failed()
        return Settled(result, Verdict.of(decision))

    async def _recover(self, index: int, prepared: PreparedCall | ToolFailure) -> Settled:
        name = self._call(index).name
        if isinstance(prepared, PreparedCall):
            context = self._context(index, prepared)
            known = await self._agent.tools.reconcile(prepared, context)
            if known is not None:
                return Settled(await self._kept(known))
        unknown = ToolResult.unknown(name)
        if self._agent.recovery_policy is RecoveryPolicy.REPORT:
            return Settled(unknown)
        why = f"the outcome of {name} ({self._key(index)}) is unknown after a crash"
        return Settled(unknown, Verdict(StopReason.RUNTIME_ERROR, error=why))

    async def _kept(self, result: ToolResult) -> ToolResult:
        kept = await keep_content(result, self._session.keep, self._session.blob_bytes_max)
        if kept is not result:
            kill_point("after_content_kept")
        return kept

    def _cancelled(self, index: int) -> ToolResult:
        return ToolResult.cancelled(self._call(index).name, self._session.cancellation.reason)

    def _context(self, index: int, prepared: PreparedCall) -> ToolCallContext:
        session, turn = self._session, self._response.turn
        call = prepared.call

        async def heard(update: ToolProgressUpdate) -> None:
            payload: dict[str, Any] = {
                "tool_call_id": call.id,
                "tool_name": call.name,
                "update": json.loads(storable(json_text(update))),
            }
            session.emit(EventKind.TOOL_PROGRESSED, turn, payload)

        return ToolCallContext(
            run_id=session.run_id,
            session_id=session.session_id,
            agent=session.agent_name,
            attempt=session.attempt,
            turn=turn,
            tool_name=prepared.definition.name,
            arguments=prepared.arguments,
            tool_definition=prepared.definition,
            tool_call_id=call.id,
            operation_key=self._key(index),
            cancellation=session.cancellation,
            progress=ToolProgressReporter(heard, session.cancellation),
            count=partial(self._count, index),
        )

    def _count(self, index: int, name: str) -> int:
        counted = self._counted.setdefault(index, {})
        if name not in counted:
            started = self._interrupted.get(index)
            if started is None or name not in started.counted:
                self._counts[name] = self._counts.get(name, 0) + 1
            counted[name] = self._counts.get(name, 1)
        return counted[name]

    def _call(self, index: int) -> ModelToolCall:
        return self._response.message.tool_calls[index]

    def _key(self, index: int) -> str:
        return f"{self._session.run_id}:{self._response.turn}:{index}"
