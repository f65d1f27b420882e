"""Sinks in real worker processes, one of which dies."""

from collections.abc import Iterable

import msgspec
from tests.e2e.harness import Fleet, WorkerProcess
from tests.e2e.observing import Story, check_rest, hearing
from tests.e2e.waiting import DEADLINE_S, until

from runlane.producer import Client, Event, EventKind

APP = "tests.e2e.event_sinks_app:app"
OF_THE_QUEUE = (EventKind.RUN_QUEUED, EventKind.ABORT_REQUESTED)
WORK = '[[tool look]] [[tool hold {"gate": "go"}]] [[say done]]'


def heard_by(fleet: Fleet, worker: WorkerProcess) -> list[Event]:
    """Return what the sink of a worker has heard so far."""
    path = fleet.directory / f"events-{worker.pid}"
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=Event) for line in lines]


def of_attempts(events: Iterable[Event]) -> list[Event]:
    """Return the events that attempts produced, as they come out of a file."""
    lines = [msgspec.json.encode(event) for event in events if event.kind not in OF_THE_QUEUE]
    return [msgspec.json.decode(line, type=Event) for line in lines]


async def test_the_sink_of_the_worker_that_takes_over_hears_its_own_attempt(
    fleet: Fleet, client: Client
) -> None:
    first = await fleet.start(app=APP)
    session = client.session("s", agent="clerk")
    async with hearing(fleet, session) as heard:
        handle = await session.run(WORK)
        await until(lambda: len(fleet.ledger.all("hold")) == 1, "the last tool has begun")
        began = [EventKind.TOOL_STARTED, EventKind.TOOL_STARTED]
        await until(
            lambda: [e.kind for e in heard_by(fleet, first) if e.kind in began] == began,
            "the first sink hears that it has",
        )
        first.kill()
        second = await fleet.start(app=APP)
        fleet.open("go")
        result = await handle.result(DEADLINE_S)
        await heard.until_ended(handle.run_id)
    assert result.output == "done"
    second.terminate()
    assert await second.ended() == 0

    sinks = [heard_by(fleet, worker) for worker in (first, second)]
    for attempt, events in enumerate(sinks, 1):
        assert {event.attempt for event in events} <= {attempt, 0}
        assert [e.terminal for e in events] == [*[False] * (len(events) - 1), attempt == 2]
    assert sinks[1][0].kind is EventKind.SUPERSEDED
    story = await Story.read(client, "s")
    both = [event for sink in sinks for event in sink]
    assert [event for event in both if event.committed] == of_attempts(story.events)
    assert both == of_attempts(heard.events)
    await check_rest(fleet)
