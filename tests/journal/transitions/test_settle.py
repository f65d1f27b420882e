"""settle: a run that nobody executes ends, with one record, and its lane goes on."""

import pytest
from tests.checkers.keyspace import text
from tests.journal.builders import started
from tests.journal.driving import Driver

from runlane.journal.errors import UnknownRunError
from runlane.journal.ids import new_run_id
from runlane.journal.wire.records import CONTROL_BRANCH
from runlane.journal.wire.results import StopReason


async def test_a_run_that_nobody_holds_ends(driver: Driver) -> None:
    run_id = (await driver.submit()).run_id
    next_id = (await driver.submit()).run_id
    assert await driver.settle(run_id)
    run = await driver.run(run_id)
    assert (run["state"], run["stop_reason"]) == ("failed", "worker_lost")
    assert await driver.queued() == [next_id]
    await driver.check()


async def test_a_waiting_run_ends_where_it_waits(driver: Driver) -> None:
    await driver.held()
    first, second = [(await driver.submit()).run_id for _ in range(2)]
    follow_up = (await driver.submit("follow_up")).run_id
    assert await driver.settle(first)
    assert await driver.settle(follow_up)
    assert await driver.waiting() == ([], [second])
    await driver.check()


async def test_a_held_run_is_its_holders(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    async with driver.unchanged():
        assert not await driver.settle(lease.run_id)
        assert not await driver.settle(lease.run_id, fence="1:0000")
    assert driver.last.reply == [b"HELD", lease.fence.encode()]
    assert await driver.settle(lease.run_id, StopReason.RUNTIME_ERROR, fence=lease.fence)
    await driver.check(quiescent=True)


async def test_a_lost_fence_settles_nothing(driver: Driver) -> None:
    lease = await driver.held()
    await driver.hand_back(lease)
    async with driver.unchanged():
        assert not await driver.settle(lease.run_id, fence=lease.fence)


async def test_a_run_that_had_begun_ends_on_its_branch(driver: Driver) -> None:
    lease = await driver.held()
    head = await driver.begin(lease)
    await driver.hand_back(lease)
    await driver.submit()
    assert await driver.settle(lease.run_id)
    end = (await driver.records())[-1]
    assert (end.kind, end.branch_id, end.parent_id) == ("run_finished", "main", head)
    lane, run = await driver.lane(), await driver.run(lease.run_id)
    assert (lane["last_run"], lane["last_stop"]) == (lease.run_id, "worker_lost")
    assert run["end"] == end.record_id
    following = await driver.lease()
    assert (await driver.checkout(following)).head == end.record_id
    await driver.append(following, [started(following)])
    await driver.check()


@pytest.mark.parametrize("checked_out", [False, True])
async def test_a_run_that_never_began_ends_beside_its_branch(
    driver: Driver, checked_out: bool
) -> None:
    await driver.completed()
    head = driver.heads["s", "main"]
    lease = await driver.held()
    if checked_out:
        await driver.checkout(lease)
    await driver.hand_back(lease)
    last = (await driver.lane())["last_run"]
    assert await driver.settle(lease.run_id)
    end = (await driver.records())[-1]
    assert (end.kind, end.branch_id) == ("run_finished", CONTROL_BRANCH)
    assert (await driver.lane())["last_run"] == last
    assert (await driver.checkout(await driver.held())).head == head
    await driver.check()


async def test_an_ended_run_stays_as_it_is(driver: Driver) -> None:
    lease = await driver.completed()
    async with driver.unchanged():
        assert not await driver.settle(lease.run_id, dead_reason="late")
    assert driver.last.reply == [b"ENDED", b"completed"]


async def test_the_same_request_again_changes_nothing(driver: Driver) -> None:
    run_id = (await driver.submit()).run_id
    assert await driver.settle(run_id, dead_reason="damaged")
    sent = driver.last
    async with driver.unchanged():
        assert (await driver.partition.resend(sent))[0] == b"ENDED"


async def test_a_dead_letter_keeps_reason_and_payload(driver: Driver) -> None:
    run_id = (await driver.submit()).run_id
    job = await driver.partition.call("HGET", driver.keys.run(run_id), "job")
    await driver.settle(run_id, dead_reason="its job is damaged")
    letter = await driver.fields(driver.keys.dead_letter(run_id))
    assert letter["reason"] == "its job is damaged"
    assert (letter["queue"], letter["payload"]) == ("a", text(job))
    assert await driver.redis.zrange(driver.keys.dead(), 0, -1) == [run_id.encode()]
    await driver.check(quiescent=True)


async def test_an_unknown_run_is_refused(driver: Driver) -> None:
    async with driver.unchanged():
        with pytest.raises(UnknownRunError):
            await driver.settle(new_run_id())
