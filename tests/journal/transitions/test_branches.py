"""create_branch and promote: a lane begins, or `main` goes on, from a record of the session."""

from collections.abc import Awaitable, Callable

import msgspec
import pytest
from tests.journal.builders import said
from tests.journal.driving import Driver

from runlane.journal import transitions
from runlane.journal.errors import (
    BranchExistsError,
    LaneBusyError,
    SessionClosedError,
    SessionConflictError,
    UnknownSessionError,
)
from runlane.journal.wire.codec import chain_hash, encode_body
from runlane.journal.wire.results import StopReason
from runlane.journal.wire.tree import BranchCreated, BranchIntent, BranchPromoted, Jump, LastRun


def jump_of(branch: str, base: str) -> Jump:
    return Jump(
        branch_id=branch,
        base_id=base,
        base_branch_id="main" if base else "",
        source_branch_id="main",
        intent=BranchIntent.FORK,
    )


async def create(
    driver: Driver, branch: str = "side", base: str = "", *, last_run: LastRun | None = None
) -> str:
    return await transitions.create_branch(
        driver.partition, "s", jump_of(branch, base), last_run=last_run
    )


async def promote(
    driver: Driver, base: str, head: str | None = None, last_run: LastRun | None = None
) -> str:
    jump = Jump(branch_id="main", base_id=base, base_branch_id="side", source_branch_id="side")
    head = driver.heads["s", "main"] if head is None else head
    return await transitions.promote(driver.partition, "s", jump, head=head, last_run=last_run)


async def two_branches(driver: Driver) -> tuple[str, str, LastRun]:
    """Return the heads of main and side, each with a run of its own, and the last run of side."""
    await driver.completed()
    await driver.branch("side", base=driver.heads["s", "main"])
    lease = await driver.completed(branch="side")
    await driver.completed()
    last_run = LastRun(lease.run_id, StopReason.TEXT_RESPONSE)
    return driver.heads["s", "main"], driver.heads["s", "side"], last_run


async def test_a_branch_begins_with_a_record_whose_parent_is_its_base(driver: Driver) -> None:
    lease = await driver.completed()
    base = driver.heads["s", "main"]
    last_run = LastRun(lease.run_id, StopReason.TEXT_RESPONSE)
    head = await create(driver, base=base, last_run=last_run)
    created = (await driver.records())[-1]
    assert (created.record_id, created.parent_id, created.branch_id) == (head, base, "side")
    assert created.body == BranchCreated(intent=BranchIntent.FORK, source_branch_id="main")
    parent = base.rpartition(".")[2]
    digest = chain_hash(parent, "side", *encode_body(created.body))
    assert head.rpartition(".")[2] == digest
    notes = await driver.partition.call("HGETALL", driver.keys.jumps("s"))
    assert notes[0].decode() == head
    assert msgspec.msgpack.decode(notes[1], type=Jump) == jump_of("side", base)
    lane = await driver.lane("s", "side")
    assert (lane.get("last_run"), lane.get("last_stop")) == (lease.run_id, "text_response")
    await driver.check(quiescent=True)


async def test_a_branch_may_begin_empty(driver: Driver) -> None:
    await driver.completed()
    head = await create(driver)
    created = (await driver.records())[-1]
    assert (created.record_id, created.parent_id) == (head, "")
    assert "last_run" not in await driver.lane("s", "side")
    await driver.check(quiescent=True)


async def test_subscribers_hear_that_a_branch_begins_and_main_goes_on(driver: Driver) -> None:
    _, side, last_run = await two_branches(driver)
    async with driver.hearing(driver.keys.events("s")) as heard:
        await create(driver, "another")
        await promote(driver, side, last_run=last_run)
    kinds = [message.split(b"\0")[3] for message in heard]
    assert kinds == [b"branch_created", b"branch_promoted"]


@pytest.mark.parametrize("name", ["main", "side"])
async def test_a_name_that_is_taken_is_refused(driver: Driver, name: str) -> None:
    await two_branches(driver)
    async with driver.unchanged():
        with pytest.raises(BranchExistsError) as refused:
            await create(driver, name)
    assert (refused.value.session_id, refused.value.branch_id) == ("s", name)


async def test_main_is_taken_even_before_its_first_record(driver: Driver) -> None:
    await driver.submit()
    async with driver.unchanged():
        with pytest.raises(BranchExistsError):
            await create(driver, "main")


async def test_main_goes_on_from_the_head_of_another_branch(driver: Driver) -> None:
    main, side, last_run = await two_branches(driver)
    head = await promote(driver, side, last_run=last_run)
    promoted = (await driver.records())[-1]
    assert (promoted.record_id, promoted.parent_id, promoted.branch_id) == (head, side, "main")
    assert promoted.body == BranchPromoted(source_branch_id="side", previous_head_id=main)
    assert (await driver.lane())["last_run"] == last_run.run_id
    assert (await driver.checkout(await driver.held())).head == head
    await driver.check()


async def test_main_forgets_its_checkpoint_when_it_goes_on_elsewhere(driver: Driver) -> None:
    _, side, last_run = await two_branches(driver)
    await driver.completed_with_checkpoint()
    assert "checkpoint" in await driver.lane()
    await promote(driver, side, last_run=last_run)
    assert "checkpoint" not in await driver.lane()
    await driver.check(quiescent=True)


async def test_main_without_a_last_run_has_nothing_to_continue(driver: Driver) -> None:
    await driver.completed()
    side = await driver.branch("side")
    await promote(driver, side)
    assert {"last_run", "last_stop"}.isdisjoint(await driver.lane())
    await driver.check(quiescent=True)


async def test_main_that_has_moved_is_left_where_it_is(driver: Driver) -> None:
    main, side, last_run = await two_branches(driver)
    await driver.completed()
    async with driver.unchanged():
        for stale in (main, "", side):
            with pytest.raises(SessionConflictError) as refused:
                await promote(driver, side, stale, last_run)
            assert (refused.value.branch_id, refused.value.head) == ("main", stale)
            assert refused.value.head_found == driver.heads["s", "main"]


@pytest.mark.parametrize("held", [False, True])
async def test_main_at_work_is_left_where_it_is(driver: Driver, held: bool) -> None:
    _, side, last_run = await two_branches(driver)
    run_id = (await driver.submit()).run_id
    if held:
        await driver.checkout(await driver.lease())
    async with driver.unchanged():
        with pytest.raises(LaneBusyError) as refused:
            await promote(driver, side, last_run=last_run)
    assert (refused.value.session_id, refused.value.branch_id) == ("s", "main")
    assert refused.value.run_id == run_id


Act = Callable[[Driver], Awaitable[str]]


async def a_fork(driver: Driver) -> str:
    return await create(driver, "new", driver.heads["s", "main"])


async def a_promotion(driver: Driver) -> str:
    return await promote(driver, driver.heads["s", "side"])


@pytest.mark.parametrize("act", [a_fork, a_promotion])
async def test_the_same_request_again_gets_the_same_answer_whatever_came_in_between(
    driver: Driver, act: Act
) -> None:
    await two_branches(driver)
    head = await act(driver)
    sent = driver.last
    branch = "new" if act is a_fork else "main"
    again = [b"DUP", head.encode()]
    async with driver.unchanged():
        assert await driver.partition.resend(sent) == again
    lease = await driver.held(branch=branch)
    await driver.begin(lease)
    async with driver.unchanged():
        assert await driver.partition.resend(sent) == again
    await driver.finish(lease, entries=[said(lease)])
    await driver.partition.call("HSET", driver.keys.session("s"), "state", "deleting")
    async with driver.unchanged():
        assert await driver.partition.resend(sent) == again


@pytest.mark.parametrize("act", [a_fork, a_promotion])
async def test_a_closed_session_keeps_its_branches(driver: Driver, act: Act) -> None:
    await two_branches(driver)
    await driver.partition.call("HSET", driver.keys.session("s"), "state", "deleting")
    async with driver.unchanged():
        with pytest.raises(SessionClosedError) as refused:
            await act(driver)
    assert (refused.value.session_id, refused.value.state) == ("s", "deleting")


@pytest.mark.parametrize("act", [a_fork, a_promotion])
async def test_a_session_that_never_was_has_no_branches(driver: Driver, act: Act) -> None:
    driver.heads.update({("s", "main"): "", ("s", "side"): "7-1.abc"})
    async with driver.unchanged():
        with pytest.raises(UnknownSessionError) as refused:
            await act(driver)
    assert refused.value.session_id == "s"
