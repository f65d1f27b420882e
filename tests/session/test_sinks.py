"""A sink hears what the journal has taken, as it has it, and nothing that it refused."""

import asyncio
import time

import pytest
from tests.journal.builders import result_of, said, started
from tests.journal.driving import Driver
from tests.journal.failover import fail_over, take_snapshot
from tests.loop.scripted_model import ScriptedModel
from tests.producer.support import until
from tests.sinks.listeners import Listener

from runlane.journal.checkpoints import Growth
from runlane.journal.errors import SessionFencedError
from runlane.journal.lease import Lease
from runlane.journal.path import read_path
from runlane.journal.wire.events import EventKind, event_of
from runlane.journal.wire.results import StopReason
from runlane.worker import Agent, CancellationToken
from runlane.worker.loop.ending import Ending
from runlane.worker.session.held import HeldLease
from runlane.worker.session.run_session import JournaledRun
from runlane.worker.session.trail import Trail

HELD_S = 60.0
CHECKPOINT_IS_DUE = 1000


async def begun(
    driver: Driver, lease: Lease, sink: Listener, *, distance: int = 0
) -> tuple[JournaledRun, HeldLease]:
    """Begin an attempt as a worker does."""
    checked_out = await driver.checkout(lease)
    held = HeldLease(
        lease=lease,
        ends_at=time.monotonic() + HELD_S,
        cancellation=CancellationToken(),
        draining=asyncio.Event(),
    )
    path = await read_path(driver.partition, lease.session_id, checked_out.head)
    run = JournaledRun(
        driver.partition,
        held,
        Agent("a", ScriptedModel([]), event_sink=sink),
        projection=path.project(),
        trail=Trail(lease.branch_id, checked_out.head, []),
        growth=Growth(distance=distance),
        server_changed=False,
        elapsed_s=0,
    )
    await run.commit(started(lease), progress=False)
    return run, held


async def closed(run: JournaledRun, held: HeldLease) -> None:
    """End an attempt, and wait for its sink."""
    await run.close()
    assert held.delivering is not None
    async with asyncio.timeout(20):
        await held.delivering


@pytest.mark.parametrize("distance", [0, CHECKPOINT_IS_DUE])
async def test_what_is_heard_of_records_is_what_the_journal_has(
    driver: Driver, distance: int
) -> None:
    await driver.completed()
    lease, sink = await driver.held(), Listener()
    run, held = await begun(driver, lease, sink, distance=distance)
    await run.commit(said(lease, calls=["x"]))
    await run.reach_turn_boundary()
    last = said(lease, 2, "done")
    reason = StopReason.TEXT_RESPONSE
    ending = Ending(reason, output="done", last=(last,), turn=2)
    finished = await run.finish(ending, result_of(reason, "done"), discard=False)
    assert finished.ended
    await closed(run, held)
    events = [event_of("s", record) for record in await driver.records()]
    expected = [
        event
        for event in events
        if event.run_id == lease.run_id and event.kind is not EventKind.RUN_QUEUED
    ]
    assert sink.committed == expected
    assert [event.kind for event in sink.events][-3:] == [
        *(EventKind.MESSAGE_COMPLETED, EventKind.TURN_COMPLETED, EventKind.AGENT_FINISHED)
    ]
    assert sink.events[-1].payload["result"]["output"] == "done"


async def test_an_end_that_is_put_off_is_heard_when_it_comes(driver: Driver) -> None:
    lease, sink = await driver.held(), Listener()
    run, held = await begun(driver, lease, sink)
    await driver.steer("wait")
    reason = StopReason.TEXT_RESPONSE
    ending = Ending(reason, output="done", last=(said(lease, 1, "done"),), turn=1)
    result = result_of(reason, "done")
    assert not (await run.finish(ending, result, discard=False)).ended
    assert (await run.finish(ending, result, discard=True)).ended
    await closed(run, held)
    assert [event.kind for event in sink.events] == [
        *(EventKind.AGENT_STARTED, EventKind.MESSAGE_COMPLETED, EventKind.TURN_COMPLETED),
        *(EventKind.STEERING_DISCARDED, EventKind.AGENT_FINISHED),
    ]
    records = [record for record in await driver.records() if record.branch_id == "main"]
    assert sink.committed == [event_of("s", record) for record in records]


async def test_a_worker_that_lost_the_lane_lets_its_sink_hear_nothing_more(driver: Driver) -> None:
    lease, sink = await driver.held(), Listener()
    run, held = await begun(driver, lease, sink)
    run.say(1, "heard")
    await until(lambda: len(sink.events) == 2)
    await driver.expire(lease)
    await driver.lease("w2")
    run.say(1, "too late")
    await until(lambda: held.lost != "")
    held.lost = ""  # it does not know yet
    run.emit(EventKind.TURN_COMPLETED, 1)
    with pytest.raises(SessionFencedError):
        await run.commit(said(lease))
    await closed(run, held)
    assert [event.kind for event in sink.events] == [
        *(EventKind.AGENT_STARTED, EventKind.ASSISTANT_TEXT_DELTA)
    ]


async def test_records_that_were_lost_are_heard_again_after_a_reset(driver: Driver) -> None:
    await driver.completed()
    lease, sink = await driver.held(), Listener()
    snapshot = await take_snapshot(driver.redis)
    run, held = await begun(driver, lease, sink)
    await run.commit(said(lease, calls=["x"]))
    await until(lambda: len(sink.events) == 2)
    before = list(sink.events)
    await fail_over(driver.redis, snapshot)
    await run.commit(said(lease, 2))
    await closed(run, held)
    reset, *after = sink.events[len(before) :]
    assert reset.kind is EventKind.JOURNAL_RESET
    assert (reset.run_id, reset.payload) == (lease.run_id, {"lost": before[-1].cursor})
    records = [record for record in await driver.records() if record.branch_id == "main"]
    assert after == [event_of("s", record) for record in records[-3:]]
    assert [event.payload for event in after[:2]] == [event.payload for event in before]
