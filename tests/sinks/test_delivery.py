"""Events on their way to one sink, whatever it does with them."""

import asyncio
import sys
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.sinks.listeners import (
    DEADLINE_S,
    LEASE,
    Failing,
    Hanging,
    Listener,
    OddSignal,
    ended,
)

from runlane.journal.wire.events import Event, EventKind
from runlane.worker.events import AgentEventSinkError, CompositeAgentEventSink
from runlane.worker.session.sinks import Delivery

Logs = list[MutableMapping[str, Any]]


def committed(revision: int) -> Event:
    return event(EventKind.TOOL_STARTED, revision=revision, cursor=f"{revision}-7.{'0' * 24}")


def provisional(count: int = 1, revision: int = 0) -> Event:
    return event(EventKind.TOOL_PROGRESSED, count=count, revision=revision)


def event(kind: EventKind, **fields: Any) -> Event:
    return Event(session_id="s", branch_id="main", run_id="run", kind=kind, at_ms=1, **fields)


def put(delivery: Delivery, *events: Event) -> None:
    with delivery.place() as place:
        place.events = events


def told(logs: Logs) -> list[str]:
    return [log["event"] for log in logs]


async def test_events_come_in_the_order_in_which_they_were_sent() -> None:
    """However late the answer to an earlier one."""
    sink = Listener()
    delivery = Delivery(sink, LEASE)
    with delivery.place() as first:
        put(delivery, committed(2))
        with delivery.place():
            first.events = [committed(1)]
            put(delivery, committed(3))
    await ended(delivery)
    assert sink.events == [committed(1), committed(2), committed(3)]


async def test_what_was_refused_is_not_heard_and_holds_nothing_up() -> None:
    sink = Listener()
    delivery = Delivery(sink, LEASE)
    put(delivery, committed(1))
    with pytest.raises(ValueError, match="refused"), delivery.place():
        raise ValueError("refused")
    put(delivery, committed(2))
    with delivery.place() as unanswered:
        unanswered.events = [committed(3)]
        delivery.close()
    await ended(delivery)
    assert sink.events == [committed(1), committed(2)]


async def test_a_provisional_event_says_which_record_it_comes_after() -> None:
    sink = Listener()
    delivery = Delivery(sink, LEASE)
    put(delivery, committed(4), provisional(1), committed(5))
    put(delivery, provisional(1), provisional(2))
    await ended(delivery)
    assert [(each.revision, each.count) for each in sink.events] == [
        *((4, 0), (4, 1), (5, 0), (5, 1), (5, 2))
    ]


async def test_events_are_heard_while_the_attempt_goes_on() -> None:
    sink = Hanging()
    delivery = Delivery(sink, LEASE)
    put(delivery, committed(1))
    async with asyncio.timeout(DEADLINE_S):
        await sink.entered.wait()
    sink.gate.set()
    await ended(delivery)


async def test_nobody_to_hear_costs_no_task() -> None:
    delivery = Delivery(None, LEASE)
    put(delivery, committed(1))
    delivery.close()
    assert delivery.task is None


def raise_value_error() -> None:
    raise ValueError("the event says: secret")


def raise_odd_signal() -> None:
    raise OddSignal


def raise_cancelled() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize("fail", [raise_value_error, sys.exit, raise_odd_signal, raise_cancelled])
async def test_a_sink_that_fails_hears_the_next_event_and_is_logged_once(
    fail: Callable[[], None],
) -> None:
    sink = Failing(fail=fail)
    delivery = Delivery(sink, LEASE)
    with capture_logs() as logs:
        put(delivery, committed(1), committed(2))
        put(delivery, committed(3))
        await ended(delivery)
    assert sink.events == [committed(1), committed(2), committed(3)]
    (log,) = logs
    assert (log["event"], log["log_level"]) == ("event_sink_failed", "warning")
    assert (log["run_id"], log["attempt"]) == ("run", 1)
    assert "secret" not in str(log)


async def test_the_log_names_what_the_sinks_of_a_composite_raised() -> None:
    fails = [Failing(fail=fail) for fail in (raise_value_error, sys.exit)]
    delivery = Delivery(CompositeAgentEventSink(fails), LEASE)
    with capture_logs() as logs:
        put(delivery, committed(1))
        await ended(delivery)
    assert [log["error"] for log in logs] == ["2 event sink(s) failed: ValueError, SystemExit"]
    assert str(AgentEventSinkError([ValueError()])) == "1 event sink(s) failed: ValueError"


async def test_a_sink_that_is_behind_misses_provisional_events_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runlane.worker.session.sinks.PROVISIONAL_WAITING_MAX", 3)
    sink = Hanging()
    delivery = Delivery(sink, LEASE)
    with capture_logs() as logs:
        for revision in range(1, 6):
            put(delivery, committed(revision), provisional())
        sink.gate.set()
        await ended(delivery)
    assert [(each.revision, each.count) for each in sink.events] == [
        *((1, 0), (1, 1), (2, 0), (3, 0), (4, 0), (5, 0))
    ]
    assert told(logs) == ["event_sink_behind"]
    assert logs[0]["left_out"] == 4


async def test_a_sink_that_is_much_too_slow_hears_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runlane.worker.session.sinks.WAITING_MAX", 3)
    sink = Hanging()
    delivery = Delivery(sink, LEASE)
    with capture_logs() as logs:
        for revision in range(1, 10):
            put(delivery, committed(revision))
            if revision == 1:
                await sink.entered.wait()
        sink.gate.set()
        await ended(delivery)
    assert sink.events == [committed(1)]
    assert told(logs) == ["event_sink_given_up"]
    assert (logs[0]["why"], logs[0]["undelivered"]) == ("it is too slow", 4)


async def test_a_sink_that_hangs_at_the_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runlane.worker.session.sinks.EVENT_SINK_DRAIN_S", 0.02)
    sink = Hanging()
    delivery = Delivery(sink, LEASE)
    with capture_logs() as logs:
        put(delivery, committed(1), committed(2))
        await ended(delivery)
    assert sink.events == [committed(1)]
    assert told(logs) == ["event_sink_given_up"]
    assert (logs[0]["why"], logs[0]["undelivered"]) == ("it takes too long", 1)


async def test_a_sink_that_does_not_let_itself_be_stopped_hears_nothing_more_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runlane.worker.session.sinks.EVENT_SINK_DRAIN_S", 0.02)

    class Stubborn(Listener):
        async def emit(self, event: Event) -> None:
            await super().emit(event)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError("not now") from None

    sink = Stubborn()
    delivery = Delivery(sink, LEASE)
    with capture_logs() as logs:
        put(delivery, committed(1), committed(2))
        await ended(delivery)
    assert sink.events == [committed(1)]
    assert told(logs) == ["event_sink_given_up", "event_sink_failed"]
