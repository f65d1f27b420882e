"""Each branch is a lane of its own."""

import asyncio

import pytest
from tests.journal.builders import said
from tests.journal.conversing import answer, begin, texts
from tests.journal.driving import Driver

from runlane.journal.errors import (
    BranchExistsError,
    ContinueRejectedError,
)
from runlane.journal.wire.control import ContinueRejectedReason
from runlane.journal.wire.results import StopReason
from runlane.journal.wire.tree import LastRun
from runlane.producer import Session


async def test_branches_run_side_by_side_on_two_workers(driver: Driver, session: Session) -> None:
    await answer(driver, "common")
    fork = await session.fork(name="side")
    await driver.register("w2")
    here, there = await driver.submit(task="here"), await driver.submit(branch="side", task="there")
    leases = [await driver.lease("w1"), await driver.lease("w2")]
    assert {lease.run_id for lease in leases} == {here.run_id, there.run_id}
    for lease in leases:
        await driver.begin(lease)
    for turn in (1, 2, 3):
        for lease in leases:
            await driver.append(lease, [said(lease, turn, f"{lease.branch_id} {turn}")])
    await driver.check()
    for lease in leases:
        await driver.finish(lease)
    for lane in (session, fork):
        spoken = [text for text in await texts(lane) if text and text[-1].isdigit()]
        assert spoken == [f"{lane.branch_id} {turn}" for turn in (1, 2, 3)]
    await driver.check(quiescent=True)


async def test_a_fork_continues_the_run_that_ended_last_before_its_base(
    driver: Driver, session: Session
) -> None:
    lease = await begin(driver, task="long")
    await driver.finish(lease, StopReason.MAX_STEPS)
    base = driver.heads["s", "main"]
    rejected = await answer(driver, "no", stop_reason=StopReason.TOOL_REJECTED)
    fork = await session.rollback(base, name="back")
    assert (await fork.checkout()).last_run == LastRun(lease.run_id, StopReason.MAX_STEPS)
    await fork.continue_run()
    continued = await driver.lease()
    assert continued.branch_id == "back"
    assert (await driver.checkout(continued)).head == await fork.head()
    await driver.finish(continued, StopReason.MAX_STEPS)
    other = await session.fork(rejected, name="no")
    for lane in (session, other):
        with pytest.raises(ContinueRejectedError) as refused:
            await lane.continue_run()
        assert refused.value.reason is ContinueRejectedReason.UNSUPPORTED_STOP_REASON
        assert refused.value.branch_id == lane.branch_id


async def test_a_fork_from_before_the_first_run_has_nothing_to_continue(
    driver: Driver, session: Session
) -> None:
    await begin(driver)
    fork = await session.fork(name="early")
    async with driver.unchanged():
        with pytest.raises(ContinueRejectedError) as refused:
            await fork.continue_run()
    assert refused.value.reason is ContinueRejectedReason.NO_PREVIOUS_RUN


async def test_main_continues_what_ended_last_on_the_branch_that_it_follows(
    driver: Driver, session: Session
) -> None:
    await answer(driver, "no", stop_reason=StopReason.TOOL_REJECTED)
    fork = await session.fork(name="side")
    await answer(driver, "yes", branch="side")
    await fork.promote()
    await session.continue_run()
    assert (await driver.lease()).branch_id == "main"
    await driver.check()


async def test_of_two_that_make_the_same_branch_at_once_one_is_refused(
    driver: Driver, session: Session
) -> None:
    first = await answer(driver, "first")
    forks = [session.fork(name="side"), session.rollback(first, name="side")]
    outcomes = await asyncio.gather(*forks, return_exceptions=True)
    refused = [type(one) for one in outcomes if not isinstance(one, Session)]
    assert refused == [BranchExistsError]
    assert len(await session.list_branches()) == 2
    await driver.check(quiescent=True)


async def test_a_branch_never_changes_the_one_that_it_comes_from(
    driver: Driver, session: Session
) -> None:
    first = await answer(driver, "first")
    lease = await begin(driver, task="second")
    await driver.submit(task="waits")

    async def source() -> tuple[object, ...]:
        of_main = [one for one in await driver.records() if one.branch_id != "@control"]
        return (
            await driver.lane(),
            await driver.waiting(),
            await driver.run(lease.run_id),
            (await driver.fields(driver.keys.heads("s")))["main"],
            [one for one in of_main if one.branch_id == "main"],
            (await session.checkout()),
        )

    before = await source()
    for call in (
        session.fork,
        lambda: session.fork(first),
        lambda: session.rollback(first),
        lambda: session.prepare_retry(lease.run_id),
    ):
        await call()
        assert await source() == before
    await answer(driver, "elsewhere", branch=(await session.fork(name="side")).branch_id)
    assert await source() == before
    await driver.append(lease, [said(lease)])
    await driver.finish(lease)
    await driver.check()
