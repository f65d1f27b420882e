"""What a sink hears of the runs that its worker executes."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs
from tests.loop.scripted_model import Answer, ScriptedModel, call, calls, text
from tests.producer.support import DEADLINE_S, Listener, listening, until, until_subscribed
from tests.sinks import listeners
from tests.sinks.listeners import Failing, Hanging
from tests.sinks.serving import serving, until_registered

from runlane.journal.partition import Partition
from runlane.producer import Client, Event, EventKind, RunHandle, Session, Settings, StopReason
from runlane.worker import Agent, ToolCallContext, ToolEffect, tool
from runlane.worker.events import AgentEventSink, CompositeAgentEventSink

ANSWERS: list[Answer] = [calls(call("look"), call("look", number=2)), text("all is well")]
"""A run of two turns."""

OF_THE_QUEUE = (EventKind.RUN_QUEUED, EventKind.ABORT_REQUESTED)
"""Events that no attempt writes."""


@tool(effect=ToolEffect.READ_ONLY)
async def look(context: ToolCallContext, number: int = 1) -> str:
    """Look, and say so."""
    await context.progress.report("looking", {"number": number})
    return "seen"


def agent_with(sink: AgentEventSink | None, answers: list[Answer] = ANSWERS) -> Agent:
    return Agent("support", ScriptedModel(answers), tools=[look], event_sink=sink)


@asynccontextmanager
async def subscribed(session: Session, partition: Partition) -> AsyncGenerator[Listener, None]:
    """Follow a session, live ones included, from before its first event."""
    async with listening(session.events()) as listener:
        await until_subscribed(partition, session)
        yield listener


def of_attempts(listener: Listener, handle: RunHandle) -> list[Event]:
    events = [event for event in listener.heard if event.run_id == handle.run_id]
    return [event for event in events if event.kind not in OF_THE_QUEUE]


async def test_a_sink_hears_what_a_subscriber_hears(
    session: Session, settings: Settings, partition: Partition
) -> None:
    sink = listeners.Listener()
    async with (
        serving(agent_with(sink), settings, partition),
        subscribed(session, partition) as listener,
    ):
        first = await session.run("one")
        second = await session.run("two")
        for handle in (first, second):
            assert (await handle.result(DEADLINE_S)).output == "all is well"
        await until(lambda: len([event for event in listener.heard if event.terminal]) == 2)
    for handle in (first, second):
        events = [event for event in sink.events if event.run_id == handle.run_id]
        assert events == of_attempts(listener, handle)
        assert events[0].kind is EventKind.AGENT_STARTED
        assert events[-1].terminal
    assert {
        EventKind.TOOL_PROGRESSED,
        EventKind.ASSISTANT_TEXT_DELTA,
        EventKind.TURN_COMPLETED,
    } <= {event.kind for event in sink.events}


async def test_a_run_that_is_aborted_ends_with_its_terminal_event_too(
    session: Session, settings: Settings, partition: Partition
) -> None:
    sink = listeners.Listener()
    agent = agent_with(sink, [calls(call("look")), None])
    assert isinstance(agent.model, ScriptedModel)
    async with serving(agent, settings, partition), subscribed(session, partition) as listener:
        handle = await session.run("one")
        await agent.model.silent.wait()
        await session.abort("enough")
        result = await handle.result(DEADLINE_S)
        await until(lambda: any(event.terminal for event in listener.heard))
    assert result.stop_reason is StopReason.EXTERNAL_ABORT
    assert sink.events == of_attempts(listener, handle)
    assert sink.events[-1].payload["result"]["error"] == "enough"


def raise_value_error() -> None:
    raise ValueError("no")


@pytest.mark.parametrize("fail", [raise_value_error, sys.exit])
async def test_a_sink_that_fails_harms_neither_runs_nor_its_neighbours(
    client: Client, settings: Settings, partition: Partition, fail: Callable[[], None]
) -> None:
    failing, sound = Failing(fail=fail), listeners.Listener()
    agent = agent_with(CompositeAgentEventSink([failing, sound]))
    async with serving(agent, settings, partition):
        for number in range(2):
            handle = await client.session(f"s{number}", agent="support").run("one")
            assert (await handle.result(DEADLINE_S)).succeeded
    assert failing.events == sound.events
    assert len([event for event in sound.events if event.terminal]) == 2


async def test_a_sink_that_hangs_holds_up_no_run_and_no_slot_and_a_stopping_worker_waits_for_it(
    client: Client, settings: Settings, partition: Partition
) -> None:
    sink = Hanging()
    one_slot = replace(settings, max_runs=1)
    async with serving(agent_with(sink), one_slot, partition) as drain:
        for number in range(2):
            handle = await client.session(f"s{number}", agent="support").run("one")
            assert (await handle.result(DEADLINE_S)).succeeded
        assert [event.kind for event in sink.events] == [EventKind.AGENT_STARTED] * 2
        drain()
        await until_registered(partition, count=0)
        sink.gate.set()
    assert len([event for event in sink.events if event.terminal]) == 2


async def test_a_sink_that_hangs_for_ever_is_given_up_by_a_stopping_worker(
    session: Session, settings: Settings, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("session.sinks", "runner.worker"):
        monkeypatch.setattr(f"runlane.worker.{place}.EVENT_SINK_DRAIN_S", 0.05)
    with capture_logs() as logs:
        async with serving(agent_with(Hanging()), settings, partition):
            assert (await (await session.run("one")).result(DEADLINE_S)).succeeded
    assert [log["run_id"] for log in logs if log["event"] == "event_sink_given_up"]


async def test_each_worker_hears_its_own_attempts_only(
    session: Session, settings: Settings, partition: Partition
) -> None:
    entered, gate = asyncio.Event(), asyncio.Event()

    @tool(effect=ToolEffect.READ_ONLY)
    async def wait() -> str:
        """Wait."""
        entered.set()
        await gate.wait()
        return "waited"

    def agent(sink: AgentEventSink) -> Agent:
        model = ScriptedModel([calls(call("wait")), text("done")])
        return Agent("support", model, tools=[wait], event_sink=sink)

    first, second = listeners.Listener(), listeners.Listener()
    async with subscribed(session, partition) as listener:
        async with serving(agent(first), settings, partition) as drain:
            handle = await session.run("one")
            await entered.wait()
            drain()
            gate.set()
        async with serving(agent(second), settings, partition):
            assert (await handle.result(DEADLINE_S)).output == "done"
            await until(lambda: any(event.terminal for event in listener.heard))
    assert {event.attempt for event in first.events} == {1}
    assert {event.attempt for event in second.events if not event.terminal} == {2}
    assert second.events[0].kind is EventKind.SUPERSEDED
    assert [*first.events, *second.events] == of_attempts(listener, handle)
