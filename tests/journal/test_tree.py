"""The tree of a session, as a service sees it: branches from any record, main on any of them."""

import pytest
from tests.journal.builders import intent_of, outcome_of, said
from tests.journal.conversing import answer, begin, texts, told
from tests.journal.driving import Driver
from tests.journal.folding import chain, gist

from runlane.journal.errors import (
    NotAncestorError,
    UnfinishedRunError,
)
from runlane.journal.projection import Projection
from runlane.journal.tree import BranchInfo
from runlane.journal.wire.records import CONTROL_BRANCH
from runlane.journal.wire.tree import BranchCreated, BranchIntent, BranchPromoted
from runlane.producer import Session


async def test_a_fork_begins_where_its_branch_stands_and_both_go_on(
    driver: Driver, session: Session
) -> None:
    end = await answer(driver, "common")
    fork = await session.fork(name="what-if")
    assert (fork.session_id, fork.branch_id, fork.agent) == ("s", "what-if", "a")
    await answer(driver, "here")
    await answer(driver, "there", branch="what-if")
    assert await texts(session) == told("common", "here")
    assert await texts(fork) == told("common", "there")
    created = next(one for one in await driver.records() if one.branch_id == "what-if")
    assert (created.parent_id, created.body) == (
        end,
        BranchCreated(intent=BranchIntent.FORK, source_branch_id="main"),
    )
    await driver.check(quiescent=True)


async def test_a_branch_without_a_name_gets_one_that_says_why_it_was_made(
    driver: Driver, session: Session
) -> None:
    end = await answer(driver)
    names = [(await session.fork()).branch_id for _ in range(2)]
    names += [(await session.rollback(end)).branch_id]
    assert [name.partition("-")[0] for name in names] == ["fork", "fork", "rollback"]
    assert len(set(names)) == 3


async def test_a_branch_begins_at_any_record_at_which_no_run_is_open(
    driver: Driver, session: Session
) -> None:
    for task in ("one", "two", "three"):
        await answer(driver, task)
    records = chain(await driver.records(), driver.heads["s", "main"])
    for record in records:
        folded = Projection(chain(records, record.record_id))
        if folded.open_run is None:
            branch = await session.rollback(record.record_id)
            assert (await branch.checkout()).messages == folded.messages
            assert (await branch.checkout()).last_run == folded.last_run
        else:
            with pytest.raises(UnfinishedRunError) as refused:
                await session.rollback(record.record_id)
            assert refused.value.session_id == "s"
            assert refused.value.record_id == record.record_id
            assert refused.value.run_id == folded.open_run.run_id
    await driver.check(quiescent=True)


@pytest.mark.parametrize("runs_before", [0, 2])
async def test_a_fork_during_a_run_begins_before_the_run(
    driver: Driver, session: Session, runs_before: int
) -> None:
    for number in range(runs_before):
        await answer(driver, f"{number}")
    base = driver.heads.get(("s", "main"), "")
    lease = await begin(driver, task="still open")
    for turn in (1, 2):
        asked = said(lease, turn, calls=["look"])
        await driver.append(lease, [asked, intent_of(asked, 0), outcome_of(asked, 0)])
        branch = await session.fork()
        created = next(one for one in await driver.records() if one.branch_id == branch.branch_id)
        assert created.parent_id == base
        assert await texts(branch) == told(*(f"{number}" for number in range(runs_before)))
        checkpoint = (await driver.project()).checkpoint()
        assert checkpoint is not None
        await driver.append(lease, [checkpoint])  # the fork after it must not begin there
    await driver.finish(lease)
    await driver.check(quiescent=True)


async def test_a_fork_of_a_session_that_waits_for_its_first_run_is_empty(
    driver: Driver, session: Session
) -> None:
    await driver.submit()
    branch = await session.fork(name="early")
    assert await texts(branch) == []
    lease = await driver.lease()
    await driver.begin(lease)
    await driver.finish(lease)
    assert await texts(branch) == []
    await driver.check(quiescent=True)


async def test_main_goes_on_from_a_branch_and_what_it_leaves_stays_readable(
    driver: Driver, session: Session
) -> None:
    first = await answer(driver, "first")
    left = await answer(driver, "a mistake")
    branch = await session.rollback(first, name="back")
    await answer(driver, "better", branch="back")
    end = await branch.head()
    head = await branch.promote()
    assert await session.head() == head
    assert await texts(session) == told("first", "better")
    await answer(driver, "and on")
    assert await texts(session) == told("first", "better", "and on")
    assert await texts(branch) == told("first", "better")
    assert await texts(session, left) == told("first", "a mistake")
    promoted = next(one for one in await driver.records() if one.record_id == head)
    assert (promoted.parent_id, promoted.body) == (
        end,
        BranchPromoted(source_branch_id="back", previous_head_id=left),
    )
    await driver.check(quiescent=True)


async def test_a_branch_may_be_promoted_again_and_again(driver: Driver, session: Session) -> None:
    await answer(driver, "common")
    branch = await session.fork(name="side")
    expected = ["common"]
    for task in ("one", "two"):
        await answer(driver, task, branch="side")
        expected.append(task)
        await branch.promote()
        assert await texts(session) == told(*expected)
    await driver.check(quiescent=True)


async def test_what_lies_on_main_after_a_promotion_is_an_ancestor_and_what_it_left_is_not(
    driver: Driver, session: Session
) -> None:
    first = await answer(driver, "first")
    left = await answer(driver, "left")
    branch = await session.rollback(first, name="back")
    better = await answer(driver, "better", branch="back")
    await branch.promote()
    await answer(driver, "on")
    for record_id, expected in ((first, ["first"]), (better, ["first", "better"])):
        assert await texts(await session.rollback(record_id)) == told(*expected)
    with pytest.raises(NotAncestorError) as refused:
        await session.rollback(left)
    error = refused.value
    assert (error.session_id, error.branch_id, error.record_id) == ("s", "main", left)


async def test_only_what_leads_to_a_branch_is_its_ancestor(
    driver: Driver, session: Session
) -> None:
    first = await answer(driver, "first")
    left = await session.fork(name="left")
    late = await answer(driver, "late")
    deep = await answer(driver, "deep", branch="left")
    deeper = await left.fork(name="deeper")
    await answer(driver, "deepest", branch="deeper")
    beside = await answer(driver, "beside", branch="left")
    ancestors = {"main": {first, late}, "left": {first, deep, beside}, "deeper": {first, deep}}
    for lane in (session, left, deeper):
        for record_id in (first, late, deep, beside):
            if record_id in ancestors[lane.branch_id]:
                await lane.fork(record_id)
                continue
            with pytest.raises(NotAncestorError) as refused:
                await lane.fork(record_id)
            assert refused.value.branch_id == lane.branch_id
    await driver.check(quiescent=True)


async def test_all_branches_are_listed_with_where_they_come_from(
    driver: Driver, session: Session
) -> None:
    await driver.submit()
    assert await session.list_branches() == [BranchInfo(branch_id="main", head_id=None)]
    empty = await session.fork(name="empty")
    lease = await driver.lease()
    await driver.begin(lease)
    first = (await driver.finish(lease)).head
    fork = await session.fork(name="a-fork")
    back = await fork.rollback(first, name="back")
    retry = await session.prepare_retry(lease.run_id, name="again")
    await fork.promote()
    listed = await session.list_branches()
    heads = [await one.head() for one in (session, empty, fork, back)]
    revisions = [one.revision for one in await driver.records() if one.kind == "branch_created"]
    assert listed == [
        BranchInfo(branch_id="main", head_id=heads[0]),
        BranchInfo(
            branch_id="empty",
            head_id=heads[1],
            intent=BranchIntent.FORK,
            source_branch_id="main",
            created_revision=revisions[0],
        ),
        BranchInfo(
            branch_id="a-fork",
            head_id=heads[2],
            intent=BranchIntent.FORK,
            base_id=first,
            source_branch_id="main",
            created_revision=revisions[1],
        ),
        BranchInfo(
            branch_id="back",
            head_id=heads[3],
            intent=BranchIntent.ROLLBACK,
            base_id=first,
            source_branch_id="a-fork",
            created_revision=revisions[2],
        ),
        BranchInfo(
            branch_id="again",
            head_id=listed[-1].head_id,
            intent=BranchIntent.RETRY,
            source_branch_id="main",
            retried_run_id=lease.run_id,
            created_revision=revisions[3],
        ),
    ]
    assert retry.branch_id == "again"


async def test_a_checkout_of_any_record_is_what_leads_to_it(
    driver: Driver, session: Session
) -> None:
    await answer(driver, "one")
    await driver.completed_with_checkpoint()
    fork = await session.fork(name="side")
    await answer(driver, "two", branch="side")
    lease = await begin(driver, "side", "open")
    records = await driver.records()
    for record in records:
        if record.branch_id == CONTROL_BRANCH:
            continue
        folded = Projection(chain(records, record.record_id, whole=True))
        async with driver.unchanged():
            found = await session.checkout(record.record_id)
        assert (found.session_id, found.branch_id) == ("s", "main")
        assert found.record_id == record.record_id
        assert (found.messages, found.last_run) == gist(folded)[:2]
        assert found.open_run == (folded.open_run and folded.open_run.run_id)
    assert (await fork.checkout()).open_run == lease.run_id
    assert (await fork.checkout()).record_id == await fork.head()


async def test_records_come_from_either_end(driver: Driver, session: Session) -> None:
    for task in ("one", "two"):
        await answer(driver, task)
    await session.fork()
    forward = [record async for record in session.records()]
    assert forward == await driver.records()
    backward = [record async for record in session.records(newest_first=True)]
    assert backward == forward[::-1]


async def test_before_its_first_record_a_branch_is_empty(driver: Driver, session: Session) -> None:
    assert await session.messages() == []
    await driver.submit()
    assert await session.messages() == []
    assert await session.head() is None
    assert (await session.checkout()).record_id is None
