"""A model request: what it carries, and the response to it."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final, cast

import msgspec
import structlog

from runlane.journal.projection import OpenRun
from runlane.journal.transcript import faults, repaired
from runlane.journal.wire.events import EventKind
from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    ModelToolCall,
    ModelUsage,
    SystemMessage,
)
from runlane.journal.wire.records import MessageAppended
from runlane.journal.wire.results import StopReason
from runlane.worker.app import Agent
from runlane.worker.behavior import BehaviorDecision, hinted, transformed
from runlane.worker.control import AgentCancelledError, OutOfTimeError
from runlane.worker.loop.ending import Ending
from runlane.worker.loop.guards import remaining_s
from runlane.worker.loop.moments import Moments
from runlane.worker.loop.session import RunSession
from runlane.worker.models import (
    ModelContext,
    ModelErrorKind,
    ModelProviderError,
    ModelResponseCompleted,
    receive,
)
from runlane.worker.tools.execution import asked_to_stop, contain
from runlane.worker.tools.texts import describe, storable

logger = structlog.get_logger(__name__)

TOKENS_MAX: Final = 2**53
EXPLICIT_FINISH: Final = (
    "Work until the task is done, then call the tool that completes it. "
    "An answer without a tool call does not end your work."
)
CALL_A_TOOL: Final = (
    "Your last answer called no tool, so your work goes on. "
    "Call one: the task is done only once a tool has completed it."
)


class Requests:
    """Asks the model for the turns of one attempt."""

    def __init__(self, agent: Agent, session: RunSession, moments: Moments) -> None:
        self._agent = agent
        self._session = session
        self._moments = moments
        self._transcript: Sequence[ContextMessage] | None = None
        self._looked_at = 0
        self._mended: list[ContextMessage] | None = None

    async def ask(self, run: OpenRun) -> MessageAppended | Ending | BehaviorDecision:
        """Return the response to the next turn, how the run ends without one, or who stops it.

        Raises:
            BehaviorHookError: A hook, the transform or the hint provider failed.
            AgentCancelledError: The run was told to stop while one of them was at work.
            RuntimeError: The model raised something that is no `Exception`, or cancelled itself.
            Exception: Whatever the model raises besides `ModelProviderError`.
        """
        turn = run.turn + 1
        history = await self._history(run)
        decision = await self._moments.before_model(turn, history)
        if decision is not None:
            if decision.stops:
                return decision
            if decision.messages is not None:
                history = repaired(decision.messages)
        messages = (*self._instructions(), *history, *self._reminder(run))
        completed = await self._answer(turn, ModelContext(messages, self._agent.tool_schemas))
        if isinstance(completed, Ending):
            return completed
        return MessageAppended(
            run_id=self._session.run_id,
            attempt=self._session.attempt,
            turn=turn,
            message=_storable(completed.message),
            usage=_countable(completed.usage),
        )

    async def _answer(self, turn: int, context: ModelContext) -> ModelResponseCompleted | Ending:
        session, policy = self._session, self._agent.runtime_policy

        def ask() -> Awaitable[ModelResponseCompleted]:
            return receive(
                self._agent.model,
                context,
                cancellation=session.cancellation,
                hear_text=lambda delta: session.say(turn, storable(delta)),
                hear_thinking=lambda delta: self._think(turn, delta),
            )

        left_s = remaining_s(policy, session.elapsed_s)
        limits = [each for each in (policy.model_timeout_s, left_s) if each is not None]
        try:
            return await session.cancellation.run(
                contain(ask, who="model"), timeout_s=min(limits, default=None)
            )
        except (
            asyncio.CancelledError,
            AgentCancelledError,
            OutOfTimeError,
            ModelProviderError,
        ) as error:
            if asked_to_stop():
                raise asyncio.CancelledError from error
            return self._unanswered(turn, error)

    async def _history(self, run: OpenRun) -> Sequence[ContextMessage]:
        """Return the conversation as the model is to read it; the journal stays as it is."""
        agent, session = self._agent, self._session
        history: Sequence[ContextMessage] = self._sound_history(run)
        timeout_s = agent.runtime_policy.hook_timeout_s
        if agent.context_transform is not None:
            history = repaired(
                await transformed(
                    agent.context_transform,
                    history,
                    cancellation=session.cancellation,
                    timeout_s=timeout_s,
                )
            )
        if agent.hint_provider is not None:
            snapshot = self._moments.snapshot()
            history = await hinted(
                agent.hint_provider,
                history,
                snapshot,
                cancellation=session.cancellation,
                timeout_s=timeout_s,
            )
        return history

    def _sound_history(self, run: OpenRun) -> Sequence[ContextMessage]:
        """Return the transcript as a provider takes it, and look at each message of it once."""
        messages = self._session.projection.messages
        if messages is not self._transcript:
            self._transcript, self._mended, self._looked_at = messages, None, 0
        first = 0 if self._session.projection.foreign else run.first_message
        start = max(first, self._looked_at)
        if faults(messages, start):
            self._mended = repaired([*(self._mended or messages[:start]), *messages[start:]])
        elif self._mended is not None:
            self._mended += messages[start:]
        self._looked_at = len(messages)
        return messages if self._mended is None else self._mended

    def _instructions(self) -> tuple[SystemMessage, ...]:
        texts = [self._agent.system_prompt]
        if self._agent.runtime_policy.require_explicit_finish:
            texts.append(EXPLICIT_FINISH)
        return tuple(SystemMessage(text) for text in texts if text)

    def _reminder(self, run: OpenRun) -> tuple[SystemMessage, ...]:
        policy, count = self._agent.runtime_policy, run.without_tools
        if not policy.require_explicit_finish or not count:
            return ()
        again = f" Retry {count}/{policy.max_no_tool_responses}." if count > 1 else ""
        return (SystemMessage(CALL_A_TOOL + again),)

    def _think(self, turn: int, delta: str) -> None:
        self._session.emit(EventKind.ASSISTANT_THINKING_DELTA, turn, {"delta": storable(delta)})

    def _unanswered(self, turn: int, error: BaseException) -> Ending:
        """Return how the run ends without a response."""
        cancellation = self._session.cancellation
        if isinstance(error, ModelProviderError):
            # What does not fit was never read: it cost nothing.
            read = error.kind is not ModelErrorKind.CONTEXT_OVERFLOW
            return Ending(error.stop_reason, error=describe(error), turn=turn, unanswered=read)
        if isinstance(error, OutOfTimeError):
            over = remaining_s(self._agent.runtime_policy, self._session.elapsed_s) == 0
            reason = StopReason.DEADLINE_EXCEEDED if over else StopReason.PROVIDER_TIMEOUT
            limit = self._agent.runtime_policy.budget.max_wall_s
            late = f"model {self._agent.model.name}: {error}"
            why = f"the run has had its {limit} s" if over else late
            return Ending(reason, error=why, turn=turn, unanswered=True)
        if not cancellation.cancelled:
            raise RuntimeError("the model cancelled itself") from error
        aborted = StopReason.EXTERNAL_ABORT
        return Ending(aborted, error=cancellation.reason, turn=turn, unanswered=True)


def _storable(message: AssistantMessage) -> AssistantMessage:
    content = None if message.content is None else storable(message.content)
    ids: set[str] = set()
    calls: list[ModelToolCall] = []
    for index, call in enumerate(message.tool_calls):
        call_id = storable(call.id) or "call"
        while call_id in ids or not call.id:  # a result must name its call
            call_id = f"{call_id}-{index}"
            if call_id not in ids:
                break
        ids.add(call_id)
        calls.append(ModelToolCall(call_id, storable(call.name), storable(call.arguments)))
    return AssistantMessage(content, tuple(calls))


def _countable(usage: ModelUsage | None) -> ModelUsage | None:
    """Return what a model says that a request cost, if it says so in whole numbers."""
    if usage is None:
        return None
    given = cast("object", usage)
    counts = msgspec.structs.astuple(usage) if isinstance(given, ModelUsage) else (None,)
    needed, optional = counts[:2], (each for each in counts[2:] if each is not None)
    if all(type(each) is int and 0 <= each <= TOKENS_MAX for each in (*needed, *optional)):
        return usage
    logger.warning("usage_unusable")
    return None
