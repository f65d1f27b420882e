"""Where hooks look into the loop. A moment for which no hook waits costs nothing."""

from collections.abc import Sequence

import structlog

from runlane.journal.wire.messages import AssistantMessage, ContextMessage
from runlane.journal.wire.records import MessageAppended
from runlane.journal.wire.tree import SteeringApplied
from runlane.worker.app import Agent
from runlane.worker.behavior import (
    BehaviorDecision,
    BehaviorHookError,
    HookedCall,
    TurnSnapshot,
)
from runlane.worker.control import CancellationToken
from runlane.worker.loop.ending import Ending
from runlane.worker.loop.session import RunSession
from runlane.worker.tools import PreparedCall, ToolResult

logger = structlog.get_logger(__name__)


class Moments:
    """The hooks of an agent, for one attempt of one run.

    Each method returns what the hooks decide together, or None if they leave things as they are.

    Attributes:
        wants_response: Whether a hook looks at each response before it is acted on.
        wants_calls: Whether a hook looks at each tool call.

    Raises:
        BehaviorHookError: A hook failed; so do all methods but `on_run_end`.
        AgentCancelledError: The run was told to stop meanwhile; so do they.
    """

    def __init__(self, agent: Agent, session: RunSession) -> None:
        self._agent = agent
        self._session = session
        self._hooks = agent.hooks
        of_calls = ("before_tool", "after_tool", "after_failed_tool")
        self.wants_response = self._hooks.wants("after_model")
        self.wants_calls = any(map(self._hooks.wants, of_calls))

    def snapshot(self, response: AssistantMessage | None = None, turn: int = 0) -> TurnSnapshot:
        """Return the run as it stands."""
        session, projection = self._session, self._session.projection
        run = projection.open_run
        assert run is not None
        return TurnSnapshot(
            agent_id=session.agent_name,
            run_id=session.run_id,
            session_id=session.session_id,
            attempt=session.attempt,
            turn=turn or run.turn,
            task=run.task,
            response=response,
            usage=run.usage,
            messages=projection.messages,
        )

    async def on_run_start(self) -> BehaviorDecision | None:
        """Ask before the first turn, unless what was said there is journaled."""
        return None if self._was_heard("on_run_start") else await self._decide("on_run_start")

    async def before_model(
        self, turn: int, messages: Sequence[ContextMessage]
    ) -> BehaviorDecision | None:
        """Ask before a model request."""
        if not self._hooks.wants("before_model"):
            return None
        return await self._hooks.decide(
            "before_model",
            self.snapshot(turn=turn),
            tuple(messages),
            cancellation=self._session.cancellation,
        )

    async def after_model(self, response: MessageAppended) -> BehaviorDecision | None:
        """Ask after a response, before anything comes of it."""
        return await self._decide("after_model", response)

    async def before_tool(
        self, response: MessageAppended, prepared: PreparedCall, operation_key: str
    ) -> BehaviorDecision | None:
        """Ask before a tool call."""
        if not self.wants_calls:
            return None
        return await self._decide("before_tool", response, _hooked(prepared, operation_key))

    async def after_tool(
        self,
        response: MessageAppended,
        prepared: PreparedCall,
        operation_key: str,
        result: ToolResult,
    ) -> BehaviorDecision | None:
        """Ask after a tool call, whether it failed or not."""
        if not self.wants_calls:
            return None
        phase = "after_failed_tool" if result.is_error else "after_tool"
        return await self._decide(phase, response, _hooked(prepared, operation_key), result)

    async def after_turn(self, response: MessageAppended) -> BehaviorDecision | None:
        """Ask after a turn that does not end the run, unless what was said there is journaled."""
        if self._was_heard("after_turn"):
            return None
        return await self._decide("after_turn", response)

    def _was_heard(self, place: str) -> bool:
        run = self._session.projection.open_run
        assert run is not None
        begin = f"{run.run_id}:{run.turn + 1}:{place}:"
        return any(input_id.startswith(begin) for input_id in run.heard)

    async def _decide(
        self, phase: str, response: MessageAppended | None = None, *more: object
    ) -> BehaviorDecision | None:
        if not self._hooks.wants(phase):
            return None
        snapshot = self.snapshot(response.message, response.turn) if response else self.snapshot()
        return await self._hooks.decide(
            phase, snapshot, *more, cancellation=self._session.cancellation
        )

    async def on_run_end(self, ending: Ending) -> None:
        """Let hooks see the end, also that of a run which was told to stop."""
        if not self._hooks.wants("on_run_end"):
            return
        result = ending.result(self._session.projection)
        try:
            await self._hooks.decide(
                "on_run_end", self.snapshot(), result, cancellation=CancellationToken()
            )
        except BehaviorHookError as error:
            run_id = self._session.run_id
            logger.warning("hook_failed", run_id=run_id, hook=error.hook, phase=error.phase)


def steering_of(run_id: str, texts: Sequence[str], turn: int, place: str) -> list[SteeringApplied]:
    """Return what hooks have to say to the model.

    Args:
        run_id: The run.
        texts: What they say.
        turn: The turn that is to hear it.
        place: Where they were asked: it says so once before a turn.
    """
    return [
        SteeringApplied(
            run_id=run_id,
            input_id=f"{run_id}:{turn}:{place}:{number}",
            content=content,
            target_turn=turn,
        )
        for number, content in enumerate(texts)
    ]


def _hooked(prepared: PreparedCall, operation_key: str) -> HookedCall:
    return HookedCall(
        tool_name=prepared.definition.name,
        arguments=prepared.arguments,
        tool_call_id=prepared.call.id,
        operation_key=operation_key,
        effect=prepared.effect,
    )
