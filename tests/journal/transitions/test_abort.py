"""abort: a waiting run ends at once, the worker of a running one is told."""

import pytest
from tests.journal.builders import said
from tests.journal.driving import Driver

from runlane.journal.errors import UnknownRunError
from runlane.journal.ids import new_run_id
from runlane.journal.wire.control import ControlStatus
from runlane.journal.wire.records import CONTROL_BRANCH, AbortRequested, RunFinished
from runlane.journal.wire.results import StopReason


async def test_a_queued_run_ends_here(driver: Driver) -> None:
    run_id = (await driver.submit()).run_id
    next_id = (await driver.submit()).run_id
    assert (await driver.abort(run_id, "enough")).accepted
    *_, request, end = await driver.records()
    assert request.body == AbortRequested(run_id=run_id, branch_id="main", reason="enough")
    assert isinstance(end.body, RunFinished)
    assert end.body.result.error == "enough"
    assert end.branch_id == CONTROL_BRANCH
    run = await driver.run(run_id)
    assert (run["state"], run["stop_reason"]) == ("cancelled", "external_abort")
    assert await driver.queued() == [next_id]
    await driver.check()


@pytest.mark.parametrize("intent", ["run", "follow_up"])
async def test_a_waiting_run_ends_and_the_active_one_does_not_notice(
    driver: Driver, intent: str
) -> None:
    lease = await driver.held()
    head = await driver.begin(lease)
    first, aborted, last = [(await driver.submit(intent)).run_id for _ in range(3)]
    assert (await driver.abort(aborted)).accepted
    assert await driver.state(aborted) == "cancelled"
    assert [first, last] in await driver.waiting()
    await driver.append(lease, [said(lease)], head=head)
    await driver.check()


@pytest.mark.parametrize("begun", [False, True], ids=["leased", "running"])
async def test_a_held_run_goes_on_until_its_worker_ends_it(driver: Driver, begun: bool) -> None:
    lease = await driver.held()
    if begun:
        await driver.begin(lease)
    async with driver.hearing(driver.keys.control("w1")) as heard:
        assert (await driver.abort(lease.run_id, "enough")).accepted
    assert heard == [f"{lease.run_id}\0enough".encode()]
    assert await driver.state(lease.run_id) == ("running" if begun else "leased")
    await driver.checkout(lease)
    await driver.finish(lease, StopReason.EXTERNAL_ABORT)
    await driver.check(quiescent=True)


async def test_the_first_reason_stays(driver: Driver) -> None:
    lease = await driver.held()
    await driver.abort(lease.run_id, "enough")
    async with driver.unchanged():
        assert (await driver.abort(lease.run_id, "really")).accepted
    assert (await driver.checkout(lease)).abort_reason == "enough"


async def test_a_run_handed_back_ends_here_with_what_it_wrote(driver: Driver) -> None:
    lease = await driver.held()
    head = await driver.begin(lease)
    await driver.hand_back(lease)
    assert (await driver.abort(lease.run_id)).accepted
    assert await driver.state(lease.run_id) == "cancelled"
    request, end = (await driver.records())[-2:]
    assert request.branch_id == CONTROL_BRANCH
    assert (end.kind, end.branch_id, end.parent_id) == ("run_finished", "main", head)
    assert (await driver.lane())["last_run"] == lease.run_id
    await driver.check(quiescent=True)


async def test_an_ended_run_is_not_aborted(driver: Driver) -> None:
    lease = await driver.completed()
    async with driver.unchanged():
        receipt = await driver.abort(lease.run_id)
    assert receipt.status is ControlStatus.RUN_FINISHED


async def test_the_same_request_again_gets_the_same_receipt(driver: Driver) -> None:
    waiting, lease = (await driver.submit(session="t")).run_id, None
    lease = (await driver.claim()).runs[0].lease
    await driver.hand_back(lease)
    first = await driver.abort(waiting)
    async with driver.unchanged():
        assert await driver.abort(waiting) == first
    lease = await driver.held()
    first = await driver.abort(lease.run_id)
    async with driver.unchanged():
        assert await driver.abort(lease.run_id) == first
    await driver.finish(lease, StopReason.EXTERNAL_ABORT)
    async with driver.unchanged():
        assert await driver.abort(lease.run_id) == first


async def test_an_unknown_run_is_refused(driver: Driver) -> None:
    async with driver.unchanged():
        with pytest.raises(UnknownRunError):
            await driver.abort(new_run_id())


async def test_follow_ups_bound_to_an_aborted_run_end_too(driver: Driver) -> None:
    run_id = (await driver.submit()).run_id
    follow_up = (await driver.submit("follow_up")).run_id
    plain = (await driver.submit()).run_id
    await driver.abort(run_id)
    assert (await driver.run(follow_up))["stop_reason"] == "superseded"
    assert await driver.queued() == [plain]
    await driver.check()
