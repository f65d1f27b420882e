"""What a session does not do to its tree: each refusal names its object and changes nothing."""

import os
from collections.abc import Awaitable, Callable

import pytest
from tests.journal.conversing import begin, texts
from tests.journal.driving import Driver

from runlane.journal.errors import (
    BranchExistsError,
    InvalidInputError,
    LaneBusyError,
    SessionClosedError,
    UnfinishedRunError,
    UnknownBranchError,
    UnknownRecordError,
    UnknownSessionError,
)
from runlane.journal.ids import new_run_id
from runlane.producer import Client, Session

Call = Callable[[Session], Awaitable[object]]

BAD_NAMES = ("", "a b", "@control", "é", "lost-main-7")
VIEWS: dict[str, Call] = {
    "head": lambda session: session.head(),
    "checkout": lambda session: session.checkout(),
    "fork": lambda session: session.fork(),
    "rollback": lambda session: session.rollback("1-1." + "0" * 24),
    "promote": lambda session: session.promote(),
}


@pytest.mark.parametrize("name", [*VIEWS, "list_branches", "prepare_retry"])
async def test_a_session_that_never_was_is_unknown(
    driver: Driver, client: Client, name: str
) -> None:
    calls: dict[str, Call] = {
        **VIEWS,
        "list_branches": lambda session: session.list_branches(),
        "prepare_retry": lambda session: session.prepare_retry(new_run_id()),
    }
    await driver.completed()
    lane = client.session("nowhere", branch="side" if name == "promote" else "main")
    async with driver.unchanged():
        with pytest.raises(UnknownSessionError) as refused:
            await calls[name](lane)
    assert refused.value.session_id == "nowhere"


@pytest.mark.parametrize("name", [*VIEWS, "run", "continue_run", "messages"])
async def test_a_branch_that_was_never_made_is_unknown(
    driver: Driver, client: Client, name: str
) -> None:
    calls: dict[str, Call] = {
        **VIEWS,
        "run": lambda session: session.run("hi"),
        "continue_run": lambda session: session.continue_run(),
        "messages": lambda session: session.messages(),
    }
    await driver.completed()
    async with driver.unchanged():
        with pytest.raises(UnknownBranchError, match="it has: main") as refused:
            await calls[name](client.session("s", branch="side", agent="a"))
    assert (refused.value.session_id, refused.value.branch_id) == ("s", "side")


async def test_a_record_of_elsewhere_is_unknown(
    driver: Driver, client: Client, session: Session
) -> None:
    await driver.completed()
    await driver.completed(session="t")
    foreign = driver.heads["t", "main"]
    control = (await driver.records())[0].record_id
    head = driver.heads["s", "main"]
    changed = head[:-1] + ("1" if head.endswith("0") else "0")
    later = "99-1." + "0" * 24
    for record_id in (foreign, control, changed, later):
        for call in (session.fork, session.rollback, session.checkout):
            async with driver.unchanged():
                with pytest.raises(UnknownRecordError) as refused:
                    await call(record_id)
            assert (refused.value.session_id, refused.value.record_id) == ("s", record_id)
    assert await texts(client.session("t"), foreign)
    with pytest.raises(UnknownRecordError, match="of the control chain: no branch leads"):
        await session.fork(control)


@pytest.mark.parametrize("name", ["main", "side"])
async def test_a_name_that_is_taken_is_refused(driver: Driver, session: Session, name: str) -> None:
    lease = await driver.completed()
    await session.fork(name="side")
    calls: tuple[Call, ...] = (
        lambda lane: lane.fork(name=name),
        lambda lane: lane.rollback(driver.heads["s", "main"], name=name),
        lambda lane: lane.prepare_retry(lease.run_id, name=name),
    )
    for call in calls:
        async with driver.unchanged():
            with pytest.raises(BranchExistsError) as refused:
                await call(session)
        assert (refused.value.session_id, refused.value.branch_id) == ("s", name)


async def test_what_is_no_name_and_no_record_is_refused_before_it_is_sent(
    driver: Driver, session: Session
) -> None:
    lease = await driver.completed()
    head = driver.heads["s", "main"]
    calls: list[Call] = [
        *(lambda lane, name=name: lane.fork(name=name) for name in BAD_NAMES),
        lambda lane: lane.rollback(head, name="a/b"),
        lambda lane: lane.prepare_retry(lease.run_id, name=""),
        lambda lane: lane.prepare_retry(""),
        *(
            lambda lane, bad=bad: lane.fork(bad)
            for bad in ("", "7", head.partition(".")[0], "0-1.x")
        ),
        lambda lane: lane.rollback("head"),
        lambda lane: lane.checkout("head"),
    ]
    for call in calls:
        async with driver.unchanged():
            with pytest.raises(InvalidInputError):
                await call(session)


async def test_main_is_promoted_to_nothing_of_its_own(driver: Driver, session: Session) -> None:
    await driver.completed()
    async with driver.unchanged():
        with pytest.raises(InvalidInputError, match="main cannot follow itself"):
            await session.promote()


@pytest.mark.parametrize("held", [False, True])
async def test_main_at_work_is_not_moved(driver: Driver, session: Session, held: bool) -> None:
    await driver.completed()
    branch = await session.fork()
    run_id = (await driver.submit()).run_id
    if held:
        lease = await driver.lease()
        await driver.begin(lease)
    async with driver.unchanged():
        with pytest.raises(LaneBusyError) as refused:
            await branch.promote()
    assert (refused.value.session_id, refused.value.branch_id) == ("s", "main")
    assert refused.value.run_id == run_id


async def test_main_that_is_held_is_not_moved(driver: Driver, session: Session) -> None:
    await driver.completed()
    branch = await session.fork()
    async with session.hold() as held:
        with pytest.raises(LaneBusyError, match=f"held by .*-{os.getpid()}-") as refused:
            await branch.promote()
        assert refused.value.run_id == held.run_id
        assert "run" not in str(refused.value)
    await branch.promote()


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize("name", ["fork", "rollback", "checkout", "promote", "prepare_retry"])
async def test_what_is_missing_of_a_session_that_is_deleted_meanwhile_is_no_damage(
    driver: Driver, session: Session, name: str, gone: bool
) -> None:
    lease = await driver.completed()
    head, side = driver.heads["s", "main"], await session.fork(name="side")
    calls: dict[str, Call] = {
        "fork": lambda session: session.fork(),
        "rollback": lambda session: session.rollback(head),
        "checkout": lambda session: session.checkout(),
        "promote": lambda _: side.promote(),
        "prepare_retry": lambda session: session.prepare_retry(lease.run_id),
    }
    keys = driver.keys
    await driver.partition.call("DEL", keys.log("s"))
    if gone:
        await driver.partition.call("DEL", keys.session("s"))
    else:
        await driver.partition.call("HSET", keys.session("s"), "state", "deleting")
    with pytest.raises(UnknownSessionError if gone else SessionClosedError):
        await calls[name](session)


async def test_a_branch_at_work_is_not_followed(driver: Driver, session: Session) -> None:
    await driver.completed()
    branch = await session.fork(name="side")
    lease = await begin(driver, "side")
    async with driver.unchanged():
        with pytest.raises(UnfinishedRunError, match="wait for it, or abort it") as refused:
            await branch.promote()
    assert (refused.value.session_id, refused.value.run_id) == ("s", lease.run_id)
    assert refused.value.record_id == await branch.head()
    await driver.finish(lease)
    await branch.promote()
    await driver.check(quiescent=True)
