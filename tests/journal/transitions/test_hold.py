"""hold: a lane is kept to one holder, in the order of acceptance, as if it ran something."""

import pytest
from tests.holds.places import held, place_of, silence, waiting
from tests.journal.builders import said, started
from tests.journal.driving import LEASE_MS, RETRY_S, Driver

from runlane.journal.errors import (
    FollowUpRejectedError,
    SessionClosedError,
    SessionFencedError,
    UnknownBranchError,
    UnknownSessionError,
)
from runlane.journal.transitions import append, hold, release
from runlane.journal.transitions.hold import Ahead
from runlane.journal.wire.control import ControlStatus
from runlane.journal.wire.results import StopReason


async def test_an_idle_lane_is_held_at_once_and_nothing_is_recorded(driver: Driver) -> None:
    await driver.completed()
    head = driver.heads["s", "main"]
    records = await driver.records()
    place = place_of()
    got = await held(driver, place)
    assert got.head == head
    assert (await driver.lane())["fence"] == got.lease.fence
    run = await driver.run(place.run_id)
    assert (run["state"], run["worker"], run["intent"]) == ("running", "me", "hold")
    assert 0 < await driver.due_ms(got.lease) <= LEASE_MS
    assert await driver.records() == records
    await driver.check()


async def test_no_run_begins_in_a_lane_that_is_held(driver: Driver) -> None:
    await driver.completed()
    await held(driver, place_of())
    run_id = (await driver.submit()).run_id
    assert (await driver.claim()).runs == ()
    assert await driver.waiting() == ([], [run_id])
    await driver.check()


async def test_a_hold_waits_for_its_turn_in_the_order_of_acceptance(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    before = (await driver.submit()).run_id
    place = place_of()
    assert await waiting(driver, place) == Ahead(lease.run_id, "w1")
    after = (await driver.submit()).run_id
    assert await driver.waiting() == ([], [before, place.run_id, after])
    await driver.check()
    await driver.finish(lease)
    next_lease = await driver.lease()
    assert next_lease.run_id == before
    assert await waiting(driver, place) == Ahead(before, "w1")
    await driver.begin(next_lease)
    await driver.finish(next_lease)
    got = await held(driver, place)
    assert got.head == driver.heads["s", "main"]
    await release(driver.partition, place.run_id, retry_s=RETRY_S)
    assert await driver.queued() == [after]
    await driver.check()


async def test_the_holder_is_woken_when_its_turn_comes(driver: Driver) -> None:
    lease = await driver.held()
    place = place_of()
    await waiting(driver, place)
    wake = driver.keys.wake(f"@hold/{place.run_id}")
    assert await driver.partition.call("LLEN", wake) == 0
    await driver.begin(lease)
    await driver.finish(lease)
    assert await driver.partition.call("LLEN", wake) == 1
    assert 0 < await driver.partition.call("PTTL", wake) <= 60_000


async def test_the_same_request_again_changes_nothing(driver: Driver) -> None:
    await driver.completed()
    place, other = place_of(), place_of(holder="other")
    first = await held(driver, place)
    lane, run = await driver.lane(), await driver.run(place.run_id)
    assert await held(driver, place) == first
    assert await held(driver, place, fence=first.lease.fence) == first
    assert (await driver.lane(), await driver.run(place.run_id)) == (lane, run)
    assert await waiting(driver, other) == Ahead(place.run_id, "me", held=True)
    async with driver.unchanged():
        assert await waiting(driver, other) == Ahead(place.run_id, "me", held=True)


async def test_who_holds_a_lane_may_append_and_nobody_else(driver: Driver) -> None:
    done = await driver.completed()
    got = await held(driver, place_of())
    with pytest.raises(SessionFencedError):
        await driver.append(done, [said(done)], head=got.head)
    appended = await append(
        driver.partition,
        got.lease,
        [started(got.lease)],
        head=got.head,
        progress=True,
        retry_s=RETRY_S,
    )
    assert [record.record_id for record in await driver.records()][-1] == appended.head


async def test_a_claim_drops_a_hold_whose_holder_is_silent_and_the_lane_goes_on(
    driver: Driver,
) -> None:
    await driver.completed()
    place = place_of()
    got = await held(driver, place)
    run_id = (await driver.submit()).run_id
    await silence(driver, place)
    leases = [claimed.lease for claimed in (await driver.claim()).runs]
    assert [lease.run_id for lease in leases] == [run_id]
    run = await driver.run(place.run_id)
    assert (run["state"], run["stop_reason"]) == ("failed", "worker_lost")
    with pytest.raises(SessionFencedError) as caught:
        await hold(driver.partition, place, fence=got.lease.fence)
    assert caught.value.fence_held == leases[0].fence
    await driver.check()


async def test_whoever_waits_drops_a_silent_holder_itself(driver: Driver) -> None:
    await driver.completed()
    silent, next_one = place_of(), place_of(holder="next")
    await held(driver, silent)
    await waiting(driver, next_one)
    await silence(driver, silent)
    await held(driver, next_one)
    await driver.check()


async def test_a_lease_that_ended_and_was_not_taken_is_still_held(driver: Driver) -> None:
    await driver.completed()
    place = place_of()
    got = await held(driver, place)
    await silence(driver, place)
    assert await held(driver, place, fence=got.lease.fence) == got
    assert (await driver.claim()).runs == ()
    assert await held(driver, place, fence=got.lease.fence) == got


async def test_a_holder_that_is_not_there_when_its_turn_comes_enters_anew(driver: Driver) -> None:
    lease = await driver.held()
    place = place_of()
    await waiting(driver, place)
    await driver.begin(lease)
    run_id = (await driver.submit()).run_id
    await driver.finish(lease)
    await silence(driver, place)
    assert (await driver.lease("w2")).run_id == run_id
    assert await waiting(driver, place) == Ahead(run_id, "w2")
    assert await driver.waiting() == ([], [place.run_id])
    assert await driver.partition.call("PTTL", driver.keys.run(place.run_id)) == -1
    await driver.check()


async def test_what_is_no_hold_leaves_the_queue_of_holds(driver: Driver) -> None:
    queue = driver.keys.queue("@hold")
    await driver.partition.call("ZADD", queue, 1, "stray")
    await driver.claim()
    assert await driver.partition.call("ZCARD", queue) == 0


async def test_a_silent_hold_of_a_newer_lane_is_left_alone(driver: Driver) -> None:
    await driver.completed()
    place = place_of()
    await held(driver, place)
    await silence(driver, place)
    await driver.partition.call("HSET", driver.keys.lane("s", "main"), "schema", 2)
    await driver.claim()
    assert await driver.state(place.run_id) == "running"


async def test_an_aborted_hold_lets_the_lane_go_on(driver: Driver) -> None:
    await driver.completed()
    place, other = place_of(), place_of(holder="other")
    got = await held(driver, place)
    await waiting(driver, other)
    run_id = (await driver.submit()).run_id
    records = await driver.records()
    assert (await driver.abort(other.run_id)).accepted
    assert await driver.waiting() == ([], [run_id])
    assert (await driver.abort(place.run_id)).accepted
    assert await driver.queued() == [run_id]
    assert await driver.records() == records
    for ended, fence in ((place, got.lease.fence), (other, "")):
        with pytest.raises(SessionFencedError):
            await hold(driver.partition, ended, fence=fence)
        assert (await driver.abort(ended.run_id)).accepted, "it did end by an abort"
    await driver.check()


async def test_a_hold_cannot_be_followed_up(driver: Driver) -> None:
    await driver.completed()
    await held(driver, place_of())
    with pytest.raises(FollowUpRejectedError) as caught:
        await driver.submit("follow_up")
    assert caught.value.receipt.status is ControlStatus.AGENT_IDLE


async def test_a_follow_up_comes_before_a_hold(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    place = place_of()
    await waiting(driver, place)
    follow_up = (await driver.submit("follow_up")).run_id
    await driver.finish(lease)
    assert (await driver.lease()).run_id == follow_up


async def test_the_end_of_a_hold_discards_no_follow_up(driver: Driver) -> None:
    lease = await driver.held()
    place = place_of()
    await waiting(driver, place)
    await driver.submit("follow_up")
    await driver.settle(lease.run_id, StopReason.RUNTIME_ERROR, fence=lease.fence)
    await held(driver, place)
    await driver.check()


async def test_what_does_not_exist_cannot_be_held(driver: Driver) -> None:
    async with driver.unchanged():
        with pytest.raises(UnknownSessionError):
            await hold(driver.partition, place_of("none"))
    await driver.completed()
    async with driver.unchanged():
        with pytest.raises(UnknownBranchError, match="main"):
            await hold(driver.partition, place_of(branch="none"))


async def test_a_closed_session_cannot_be_held(driver: Driver) -> None:
    await driver.completed()
    await driver.partition.call("HSET", driver.keys.session("s"), "state", "deleting")
    async with driver.unchanged():
        with pytest.raises(SessionClosedError, match="deleting"):
            await hold(driver.partition, place_of())
