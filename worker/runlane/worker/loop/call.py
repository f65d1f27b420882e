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

from msgspec.structs import replace

from runlane.journal.errors import InvalidInputError
from runlane.journal.kill_points import kill_point
from runlane.journal.wire.messages import ModelToolCall, ToolMessage
from runlane.journal.wire.records import MessageAppended, ToolCompleted, ToolStarted
from runlane.journal.wire.results import StopReason
from runlane.worker.app import Agent
from runlane.worker.behavior import BehaviorDecision, BehaviorHookError
from runlane.worker.control import AgentCancelledError
from runlane.worker.loop.counters import Counters
from runlane.worker.loop.guards import remaining_s
from runlane.worker.loop.moments import Moments
from runlane.worker.loop.progress import reporter
from runlane.worker.loop.session import RunSession
from runlane.worker.loop.verdict import NEWS, Settled, Verdict
from runlane.worker.policy import RecoveryPolicy
from runlane.worker.tools import (
    PreparedCall,
    ToolCallContext,
    ToolControl,
    ToolEffect,
    ToolFailure,
    ToolResult,
    keep_content,
)
from runlane.worker.tools.texts import describe, json_text, storable


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
        self._counters = Counters(run, self._interrupted)

    def prepare(self, index: int) -> PreparedCall | ToolFailure:
        """Return the call as it may be made, or why not."""
        if index not in self._prepared:
            tools = self._agent.tools
            call = self._call(index)
            try:
                prepared = tools.prepare(call)
            except Exception as error:  # a handler of the application's looks at them
                why = f"its arguments could not be checked: {describe(error)}"
                prepared = ToolFailure(call, ToolResult.failed(call.name, why))
            started = self._interrupted.get(index)
            if started and started.arguments is not None and isinstance(prepared, PreparedCall):
                prepared = tools.with_arguments(prepared, json.loads(started.arguments))
            self._prepared[index] = prepared
        return self._prepared[index]

    def has_begun(self, index: int) -> bool:
        """Return whether the intent of a call is journaled."""
        return index in self._begun

    def skipped(self, index: int, why: str) -> ToolResult:
        """Return the result of a call that is not made, or of which nothing more is known."""
        name = self._call(index).name
        if index not in self._begun:
            return ToolResult.cancelled(name, f"skipped: {why}")
        if self.prepare(index).effect is ToolEffect.SIDE_EFFECTING:
            return ToolResult.unknown(name)
        return ToolResult.cancelled(name, why)

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
                begun=index in self._begun,
                remaining_s=remaining_s(self._agent.runtime_policy, self._session.elapsed_s),
            )
        except AgentCancelledError:  # between its intent and the call
            return Settled(self._cancelled(index))
        kill_point("after_tool_ran")
        return await self._ask_after(index, prepared, await self._kept(result))

    def completed(self, index: int, result: ToolResult) -> ToolCompleted:
        """Return the record of a result."""
        call = self._call(index)
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
            counted=self._counters.take(index),
        )

    async def _journal_intent(
        self, index: int, prepared: PreparedCall, context: ToolCallContext
    ) -> None:
        if index not in self._begun:
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
                    arguments=self._changed(prepared, context),
                    counted=self._counters.take(index),
                )
            )
            self._session.cancellation.raise_if_cancelled()
        if prepared.effect is ToolEffect.SIDE_EFFECTING:
            self._session.check_lease()

    def _changed(self, prepared: PreparedCall, context: ToolCallContext) -> str | None:
        """Return the arguments as JSON text if they are not those that the model wrote."""
        if not self._may_change:
            return None
        written = self._agent.tools.prepare(prepared.call)
        given = storable(json_text(context.arguments))
        same = isinstance(written, PreparedCall) and given == storable(json_text(written.arguments))
        return None if same else given

    async def _ask_before(
        self, index: int, prepared: PreparedCall
    ) -> PreparedCall | ToolFailure | Settled:
        name = prepared.definition.name
        try:
            decision = await self._moments.before_tool(self._response, prepared, self._key(index))
        except InvalidInputError as error:
            return Settled(ToolResult.failed(name, str(error)))
        except BehaviorHookError as error:
            blocked = ToolResult.failed(name, "tool blocked: a hook failed")
            return Settled(blocked, Verdict(StopReason.RUNTIME_ERROR, error=str(error)))
        except AgentCancelledError as error:
            return Settled(self._cancelled(index), Verdict.aborted(error))
        if decision is None:
            return prepared
        if decision.arguments is not None and not decision.denied:
            prepared_or_not = self._agent.tools.with_arguments(prepared, decision.arguments)
            if isinstance(prepared_or_not, ToolFailure):
                return prepared_or_not
            prepared = prepared_or_not
        return _blocked(name, decision) or prepared

    async def _ask_after(self, index: int, prepared: PreparedCall, result: ToolResult) -> Settled:
        try:
            decision = await self._moments.after_tool(
                self._response, prepared, self._key(index), result
            )
        except (BehaviorHookError, InvalidInputError) as error:
            return Settled(result, Verdict(StopReason.RUNTIME_ERROR, error=str(error)))
        except AgentCancelledError as error:
            return Settled(result, Verdict.aborted(error))
        if decision is None:
            return Settled(result)
        if decision.prefix:
            result = result.prefixed(decision.prefix)
        if decision.denied:
            failed = result.prefixed(f"error: {decision.reason or 'denied'}").marked_failed()
            result = replace(failed, control=ToolControl.CONTINUE, output=None)
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
            progress=reporter(session, turn, call),
            count=partial(self._counters.count, index),
        )

    def _call(self, index: int) -> ModelToolCall:
        return self._response.message.tool_calls[index]

    def _key(self, index: int) -> str:
        return f"{self._session.run_id}:{self._response.turn}:{index}"


def _blocked(name: str, decision: BehaviorDecision) -> Settled | None:
    """Return the result of a call that hooks do not let through; None if they do."""
    verdict = Verdict.of(decision)
    if decision.denied or decision.stops:
        reason = decision.reason or "denied"
        return Settled(ToolResult.failed(name, f"tool blocked: {reason}"), verdict)
    if verdict is not None:
        return Settled(ToolResult.cancelled(name, f"skipped: {NEWS}"), verdict)
    return None
