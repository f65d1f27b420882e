"""steal: a run leaves its worker at once, and is carried on elsewhere."""

import pytest
from tests.holds.places import held, place_of, waiting
from tests.journal.builders import delta, said, taken_over
from tests.journal.driving import LEASE_MS, Driver

from runlane.journal.errors import SessionFencedError, UnknownRunError
from runlane.journal.ids import new_run_id
from runlane.journal.lease import Lease
from runlane.journal.transitions import hold, steal
from runlane.journal.wire.control import ControlReceipt, ControlStatus
from runlane.journal.wire.records import CONTROL_BRANCH, AttemptCause, LeaseStolen


async def stolen(driver: Driver, run_id: str, reason: str = "it hangs") -> ControlReceipt:
    return await steal(driver.partition, run_id, branch_id="main", reason=reason)


@pytest.mark.parametrize("begun", [False, True], ids=["leased", "running"])
async def test_another_worker_goes_on_at_once_and_no_crash_is_counted(
    driver: Driver, begun: bool
) -> None:
    lease = await driver.held()
    if begun:
        await driver.begin(lease)
    assert (await driver.claim("w2")).runs == ()
    assert (await stolen(driver, lease.run_id)).accepted
    *_, record = await driver.records()
    assert record.branch_id == CONTROL_BRANCH
    assert record.body == LeaseStolen(run_id=lease.run_id, branch_id="main", reason="it hangs")
    await driver.check()
    heir = await driver.lease("w2", lease_ms=LEASE_MS)
    assert (heir.run_id, heir.attempt, heir.cause) == (lease.run_id, 2, AttemptCause.STOLEN)
    assert "crashes" not in await driver.run(lease.run_id)
    await driver.checkout(heir)
    if begun:
        await driver.append(heir, [taken_over(heir)], progress=False)
        await driver.finish(heir)
        await driver.check(quiescent=True)


async def test_the_worker_is_told_which_lease_it_has_lost(driver: Driver) -> None:
    lease = await driver.held()
    async with driver.hearing(driver.keys.control("w1")) as heard:
        await stolen(driver, lease.run_id, "it\0hangs")
    assert heard == [f"\0{lease.run_id}\0{lease.fence}\0it\0hangs".encode()]


async def test_nothing_that_the_old_worker_sends_is_accepted(driver: Driver) -> None:
    lease = await driver.held()
    head = await driver.begin(lease)
    await stolen(driver, lease.run_id)
    await refused(driver, lease, head)
    heir = await driver.lease("w2")
    await refused(driver, lease, head)
    await driver.checkout(heir)
    await driver.append(heir, [taken_over(heir)], progress=False)
    await refused(driver, lease, head)


async def refused(driver: Driver, lease: Lease, head: str) -> None:
    """Try everything that a worker does."""
    async with driver.unchanged():
        with pytest.raises(SessionFencedError):
            await driver.append(lease, [said(lease)], head=head)
        with pytest.raises(SessionFencedError):
            await driver.finish(lease, head=head)
        with pytest.raises(SessionFencedError):
            await driver.publish(lease, delta(lease), text="y")
        with pytest.raises(SessionFencedError):
            await driver.checkout(lease)
        assert not await driver.hand_back(lease)
        assert not await driver.settle(lease.run_id, fence=lease.fence)
    assert (await driver.renew(lease)).lost == (lease.run_id,)


async def test_the_same_request_again_does_not_take_it_from_the_next_worker(
    driver: Driver,
) -> None:
    lease = await driver.held()
    await stolen(driver, lease.run_id)
    request = driver.last
    heir = await driver.lease("w2")
    async with driver.unchanged():
        assert await driver.partition.resend(request) == request.reply
    assert (await driver.lane())["fence"] == heir.fence


async def test_a_run_that_nobody_holds_is_left_alone(driver: Driver) -> None:
    active, behind = (await driver.submit()).run_id, (await driver.submit()).run_id
    for run_id in (active, behind):
        async with driver.unchanged():
            receipt = await stolen(driver, run_id)
        assert receipt.status is ControlStatus.AGENT_IDLE


async def test_a_run_that_has_ended_is_left_alone(driver: Driver) -> None:
    lease = await driver.completed()
    async with driver.unchanged():
        receipt = await stolen(driver, lease.run_id)
    assert receipt.status is ControlStatus.RUN_FINISHED


async def test_an_unknown_run_is_refused(driver: Driver) -> None:
    async with driver.unchanged():
        with pytest.raises(UnknownRunError):
            await stolen(driver, new_run_id())


async def test_an_abort_outlives_the_steal(driver: Driver) -> None:
    lease = await driver.held()
    await driver.abort(lease.run_id, "enough")
    await stolen(driver, lease.run_id)
    heir = await driver.lease("w2")
    assert (await driver.checkout(heir)).abort_reason == "enough"


async def test_a_lane_is_taken_from_a_hold(driver: Driver) -> None:
    await driver.completed()
    place, other = place_of(), place_of(holder="other")
    got = await held(driver, place)
    await waiting(driver, other)
    records = await driver.records()
    assert (await stolen(driver, place.run_id)).accepted
    assert await driver.records() == records
    with pytest.raises(SessionFencedError):
        await hold(driver.partition, place, fence=got.lease.fence)
    assert (await stolen(driver, other.run_id)).accepted, "one that was offered the lane"
    await driver.check(quiescent=True)
