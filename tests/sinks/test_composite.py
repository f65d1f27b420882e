"""Several sinks as one."""

import asyncio
import sys

import pytest
from tests.sinks.listeners import Failing, Hanging, Listener, OddSignal

from runlane.journal.wire.events import Event, EventKind
from runlane.worker.events import AgentEventSinkError, CompositeAgentEventSink

EVENT = Event(session_id="s", branch_id="main", run_id="r", kind=EventKind.TURN_STARTED, at_ms=1)


async def test_each_sink_hears_each_event_in_order() -> None:
    heard: list[str] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        async def emit(self, event: Event) -> None:
            heard.append(self.name)

    composite = CompositeAgentEventSink(iter([Named("one"), Named("two")]))
    await composite.emit(EVENT)
    await composite.emit(EVENT)
    assert heard == ["one", "two"] * 2


async def test_those_that_fail_keep_none_of_the_others_from_hearing() -> None:
    def refuse() -> None:
        raise ValueError("the event says: secret")

    def signal() -> None:
        raise OddSignal

    def give_up() -> None:
        raise asyncio.CancelledError

    fails = [refuse, sys.exit, signal, give_up]
    last = Listener()
    composite = CompositeAgentEventSink([*(Failing(fail=fail) for fail in fails), last])
    with pytest.raises(AgentEventSinkError) as caught:
        await composite.emit(EVENT)
    assert last.events == [EVENT]
    assert [type(error) for error in caught.value.errors] == [
        *(ValueError, SystemExit, OddSignal, asyncio.CancelledError)
    ]
    assert isinstance(caught.value.__cause__, ValueError)
    assert "4 event sink(s) failed: ValueError, SystemExit" in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_a_stop_of_its_caller_goes_on() -> None:
    hanging, last = Hanging(), Listener()
    task = asyncio.create_task(CompositeAgentEventSink([hanging, last]).emit(EVENT))
    await hanging.entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert last.events == []


async def test_none_at_all_is_no_fault() -> None:
    await CompositeAgentEventSink([]).emit(EVENT)
