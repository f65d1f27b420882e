"""A run is given again from before it, and nothing is executed."""

import pytest
from tests.journal.conversing import answer, begin, continuation, texts, told
from tests.journal.driving import Driver

from runlane.journal import tree
from runlane.journal.errors import (
    RetryRejectedError,
    UnknownRunError,
)
from runlane.journal.ids import new_run_id
from runlane.journal.wire.results import StopReason
from runlane.journal.wire.tree import BranchCreated, BranchIntent
from runlane.producer import Client, Session


async def test_a_run_is_given_again_from_before_it(driver: Driver, session: Session) -> None:
    await answer(driver, "first")
    base = driver.heads["s", "main"]
    lease = await begin(driver, task="Why?")
    await driver.finish(lease, StopReason.MAX_STEPS)
    await answer(driver, "later")
    retry = await session.prepare_retry(lease.run_id, name="again")
    assert (retry.branch_id, retry.task, retry.retried_run_id) == ("again", "Why?", lease.run_id)
    created = (await driver.records())[-1]
    assert (created.branch_id, created.parent_id) == ("again", base)
    assert created.body == BranchCreated(
        intent=BranchIntent.RETRY, source_branch_id="main", retried_run_id=lease.run_id
    )
    assert await driver.queued() == [], "nothing is executed"
    await answer(driver, retry.task, branch=retry.branch_id)
    again = await session.checkout()
    assert [one.content for one in again.messages[-2:]] == told("later")
    branch = [one for one in await session.list_branches() if one.branch_id == "again"]
    assert await texts(session, branch[0].head_id) == told("first", "Why?")
    await driver.check(quiescent=True)


async def test_the_first_run_is_given_again_on_an_empty_branch(
    driver: Driver, client: Client, session: Session
) -> None:
    lease = await begin(driver, task="Why?")
    await driver.finish(lease)
    retry = await session.prepare_retry(lease.run_id)
    assert retry.branch_id.startswith("retry-")
    assert await texts(client.session("s", branch=retry.branch_id)) == []


async def test_a_run_of_another_branch_and_one_that_goes_on_are_given_again_too(
    driver: Driver, session: Session
) -> None:
    await answer(driver, "first")
    branch = await session.fork(name="side")
    lease = await begin(driver, "side", "Why?")
    retry = await session.prepare_retry(lease.run_id, name="again")
    assert retry.task == "Why?"
    listed = (await session.list_branches())[-1]
    assert (listed.branch_id, listed.source_branch_id) == ("again", "side")
    assert await texts(session, listed.head_id) == told("first")
    assert (await branch.checkout()).open_run == lease.run_id


@pytest.mark.parametrize("checkpoints", [False, True])
async def test_a_run_that_is_known_by_the_journal_alone_is_given_again(
    driver: Driver, session: Session, checkpoints: bool
) -> None:
    lease = await begin(driver, task="Why?")
    await driver.finish(lease)
    await driver.partition.call("DEL", driver.keys.run(lease.run_id))  # as its expiry does
    for _ in range(3):
        if checkpoints:
            await driver.completed_with_checkpoint()
        await answer(driver, "later")
    branch = await session.fork(name="side")
    for number, lane in enumerate((session, branch)):
        retry = await lane.prepare_retry(lease.run_id, name=f"again-{number}")
        assert retry.task == "Why?"


async def test_a_run_without_a_task_of_its_own_is_not_given_again(
    driver: Driver, client: Client, session: Session
) -> None:
    foreign = await driver.completed(session="t")
    await driver.completed()
    continued = await driver.held(intent="continue")
    await driver.checkout(continued)
    await driver.append(continued, [continuation(continued)])
    await driver.finish(continued)
    waiting = (await driver.submit()).run_id
    never_began = (await driver.submit()).run_id
    await driver.abort(never_began)
    for run_id in (continued.run_id, waiting, never_began):
        async with driver.unchanged():
            with pytest.raises(RetryRejectedError, match=run_id) as refused:
                await session.prepare_retry(run_id)
        assert (refused.value.session_id, refused.value.run_id) == ("s", run_id)
    for run_id in (foreign.run_id, new_run_id(), "r-from-another-system"):
        async with driver.unchanged():
            with pytest.raises(UnknownRunError) as unknown:
                await session.prepare_retry(run_id)
        assert unknown.value.run_id == run_id
    assert (await client.session("t").prepare_retry(foreign.run_id)).task == "hi"


async def test_the_cost_of_a_retry_does_not_depend_on_the_length_of_the_journal(
    driver: Driver,
) -> None:
    costs: list[int] = []
    lease = await driver.completed()
    for number in range(4):
        for _ in range(10):
            await driver.completed_with_checkpoint()
        last = await driver.completed()
        await driver.completed()
        for run_id in (lease.run_id, last.run_id):
            before = driver.partition.count
            name = f"again-{number}-{run_id}"
            await tree.prepare_retry(driver.partition, "s", run_id, name=name)
            costs.append(driver.partition.count - before)
    assert costs == costs[:2] * 4
    assert max(costs) < 12


async def test_a_run_of_another_session_is_said_to_be_one(driver: Driver, session: Session) -> None:
    await driver.completed()
    elsewhere = await driver.completed(session="t")
    with pytest.raises(UnknownRunError) as refused:
        await session.prepare_retry(elsewhere.run_id)
    assert "it is one of session 't'" in str(refused.value)
    assert "deployment" not in str(refused.value)


async def test_a_run_id_may_be_given_in_another_form(driver: Driver, session: Session) -> None:
    lease = await driver.completed()
    assert (await session.prepare_retry(lease.run_id.upper())).retried_run_id == lease.run_id
