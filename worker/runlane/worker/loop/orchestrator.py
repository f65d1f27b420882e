"""The loop: model turn, tool calls, model turn, until the run ends."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

from runlane.journal.projection import OpenRun
from runlane.journal.wire.events import EventKind
from runlane.journal.wire.messages import AssistantMessage, ModelToolCall, SystemMessage
from runlane.journal.wire.records import MessageAppended
from runlane.journal.wire.results import StopReason
from runlane.worker.app import Agent
from runlane.worker.control import AgentCancelledError
from runlane.worker.loop.calls import settle_calls
from runlane.worker.loop.ending import Ending
from runlane.worker.loop.session import RunSession
from runlane.worker.models import (
    ModelContext,
    ModelProviderError,
    ModelResponseCompleted,
    ModelTextDelta,
    ModelThinkingDelta,
)
from runlane.worker.tools.execution import asked_to_stop, contain
from runlane.worker.tools.texts import describe, storable


async def orchestrate(agent: Agent, session: RunSession) -> Ending:
    """Carry the open run on from wherever its records stand, and return how it ends.

    Nothing but the end itself is left to journal: every other record was committed on the way.

    Raises:
        WriteRefusedError: The lease was lost.
        HandBackSignal: The worker stops, and the run is at a turn boundary.
        RuntimeError: The model raised something that is no `Exception`, or cancelled itself.
        Exception: Whatever the model raises besides `ModelProviderError`.
    """
    run = _open_run(session)
    if ending := await _unfinished_turn(agent, session, run):
        return ending
    while True:
        if session.cancellation.cancelled:
            return Ending(StopReason.EXTERNAL_ABORT, error=session.cancellation.reason)
        await session.reach_turn_boundary()
        if run.turn >= agent.runtime_policy.max_steps:
            return Ending(
                StopReason.MAX_STEPS, error=f"the run took its {run.turn} permitted turns"
            )
        response = await _ask_model(agent, session, run.turn + 1)
        if isinstance(response, Ending):
            return response
        if not response.message.tool_calls:
            return _text_ending(response)
        if ending := await settle_calls(agent, session, response):
            return ending
        session.emit(EventKind.TURN_COMPLETED, response.turn)


def _open_run(session: RunSession) -> OpenRun:
    run = session.projection.open_run
    assert run is not None, "the attempt begins with a record of the run"
    assert run.run_id == session.run_id, "a lane has one open run"
    return run


async def _unfinished_turn(agent: Agent, session: RunSession, run: OpenRun) -> Ending | None:
    """Finish the turn in which an earlier attempt ended."""
    if run.response is None:
        return None
    if not run.response.message.tool_calls:
        return _text_ending(run.response, committed=True)
    if not run.calls_without_result():
        return None
    return await settle_calls(agent, session, run.response, committed=True)


def _text_ending(response: MessageAppended, *, committed: bool = False) -> Ending:
    text = response.message.content
    last = () if committed else (response,)
    if not text:
        return Ending(
            StopReason.EMPTY_RESPONSE,
            error="the model gave no answer",
            last=last,
            turn=response.turn,
        )
    return Ending(StopReason.TEXT_RESPONSE, output=text, last=last, turn=response.turn)


async def _ask_model(agent: Agent, session: RunSession, turn: int) -> MessageAppended | Ending:
    session.emit(EventKind.TURN_STARTED, turn)
    prompt = (SystemMessage(agent.system_prompt),) if agent.system_prompt else ()
    context = ModelContext(
        messages=(*prompt, *session.projection.messages),
        tools=agent.tool_schemas,
    )
    try:
        completed = await session.cancellation.run(
            contain(lambda: _stream(agent, session, context, turn), who="model")
        )
    except (asyncio.CancelledError, AgentCancelledError, ModelProviderError) as error:
        return _ending_without_response(session, turn, error)
    return MessageAppended(
        run_id=session.run_id,
        attempt=session.attempt,
        turn=turn,
        message=completed.message,
        usage=completed.usage,
    )


def _ending_without_response(
    session: RunSession,
    turn: int,
    error: asyncio.CancelledError | AgentCancelledError | ModelProviderError,
) -> Ending:
    if asked_to_stop():
        raise asyncio.CancelledError from error
    if isinstance(error, ModelProviderError):
        return Ending(error.stop_reason, error=describe(error), turn=turn)
    if session.cancellation.cancelled:
        return Ending(StopReason.EXTERNAL_ABORT, error=session.cancellation.reason, turn=turn)
    raise RuntimeError("the model cancelled itself") from error


async def _stream(
    agent: Agent, session: RunSession, context: ModelContext, turn: int
) -> ModelResponseCompleted:
    events = agent.model.stream(context, cancellation=session.cancellation)
    async with AsyncExitStack() as stack:
        if isinstance(events, AsyncGenerator):
            stack.push_async_callback(events.aclose)
        async for event in events:
            match event:
                case ModelTextDelta():
                    session.say(turn, storable(event.delta))
                case ModelThinkingDelta():
                    delta = storable(event.delta)
                    session.emit(EventKind.ASSISTANT_THINKING_DELTA, turn, {"delta": delta})
                case ModelResponseCompleted():
                    return ModelResponseCompleted(_storable(event.message), event.usage)
    raise ModelProviderError(f"model {agent.model.name}: the stream held no complete response")


def _storable(message: AssistantMessage) -> AssistantMessage:
    content = None if message.content is None else storable(message.content)
    calls = (
        ModelToolCall(storable(call.id), storable(call.name), storable(call.arguments))
        for call in message.tool_calls
    )
    return AssistantMessage(content, tuple(calls))
