"""Waiting for a lane: in order, woken by a signal, and without a trace when it is given up."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from tests.e2e.waiting import until
from tests.journal.driving import Driver

from runlane.journal import holds
from runlane.journal.errors import (
    InvalidInputError,
    RefusedError,
    SessionFencedError,
    SessionLockTimeoutError,
    UnknownBranchError,
    UnknownSessionError,
)
from runlane.producer import Client, Session

FOR_EVER_S = 3600.0


@asynccontextmanager
async def trying(session: Session, log: list[str], name: str) -> AsyncGenerator[asyncio.Task[None]]:
    """Wait for the lane within the block, and note when it is held and when it is let go."""
    go_on = asyncio.Event()

    async def hold() -> None:
        async with session.hold():
            log.append(name)
            await go_on.wait()

    task = asyncio.create_task(hold())
    try:
        yield task
    finally:
        go_on.set()
        await asyncio.wait([task])


async def has_waiting(driver: Driver, count: int) -> None:
    async def holds_so_many() -> bool:
        return len((await driver.waiting())[1]) == count

    await until(holds_so_many, f"{count} wait in the inbox")


async def test_holders_follow_each_other_in_the_order_in_which_they_asked(
    session: Session, driver: Driver
) -> None:
    log: list[str] = []

    async def hold(name: str) -> None:
        async with session.hold():
            log.append(name)

    async with session.hold():
        tasks: list[asyncio.Task[None]] = []
        for number in range(5):
            tasks.append(asyncio.create_task(hold(str(number))))
            await has_waiting(driver, number + 1)
        assert log == []
    await asyncio.gather(*tasks)
    assert log == ["0", "1", "2", "3", "4"]
    await driver.check(quiescent=True)


async def test_who_waits_is_woken_by_a_signal(
    session: Session, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holds, "RECHECK_S", FOR_EVER_S)
    lease = await driver.held()
    await driver.begin(lease)
    log: list[str] = []
    async with trying(session, log, "held"):
        await has_waiting(driver, 1)
        await driver.finish(lease)
        await until(lambda: log == ["held"], "the lane is held")
    await driver.check(quiescent=True)


async def test_who_was_not_woken_looks_for_itself(
    session: Session, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holds, "RECHECK_S", 0.1)
    lease = await driver.held()
    await driver.begin(lease)
    log: list[str] = []
    async with trying(session, log, "held"):
        await has_waiting(driver, 1)
        ((waiter,),) = [(await driver.waiting())[1]]
        await driver.finish(lease)
        await driver.partition.call("DEL", driver.keys.wake(f"@hold/{waiter}"))
        await until(lambda: log == ["held"], "the lane is held")


async def test_a_lost_connection_does_not_end_the_wait(
    session: Session, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holds, "RECHECK_S", FOR_EVER_S)
    lease = await driver.held()
    await driver.begin(lease)
    log: list[str] = []
    async with trying(session, log, "held"):
        await has_waiting(driver, 1)
        await driver.partition.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await driver.finish(lease)
        await until(lambda: log == ["held"], "the lane is held")


@pytest.mark.parametrize("timeout", [0, 0.05])
async def test_a_lane_that_is_not_free_in_time_is_left_as_it_was(
    session: Session, driver: Driver, timeout: float
) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    with pytest.raises(SessionLockTimeoutError) as caught:
        async with session.hold(timeout=timeout):
            pytest.fail("it is held by a worker")
    assert isinstance(caught.value, RefusedError)
    assert isinstance(caught.value, TimeoutError)
    assert (caught.value.session_id, caught.value.branch_id) == ("s", "main")
    assert (caught.value.run_id, caught.value.worker) == (lease.run_id, "w1")
    for word in ("'s'", "'main'", lease.run_id, "w1"):
        assert word in str(caught.value)
    assert await driver.waiting() == ([], [])
    await driver.finish(lease)
    await driver.check(quiescent=True)


async def test_a_free_lane_is_held_at_once(session: Session, driver: Driver) -> None:
    async with session.hold(timeout=0) as held:
        assert held.head == await session.head()
        with pytest.raises(SessionLockTimeoutError) as caught:
            async with session.hold(timeout=0):
                pytest.fail("it is held")
        assert caught.value.run_id == held.run_id
        assert f"it is held by {caught.value.worker}; " in str(caught.value)
        assert "abort" not in str(caught.value)
    await driver.check(quiescent=True)


async def test_a_cancelled_wait_leaves_the_lane(session: Session, driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    task = asyncio.create_task(session.hold().__aenter__())
    await has_waiting(driver, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await driver.waiting() == ([], [])
    await driver.finish(lease)
    await driver.check(quiescent=True)


async def test_a_wait_cancelled_at_any_moment_leaves_the_lane(
    session: Session, driver: Driver
) -> None:
    """However far the request has got, and even if it has been granted meanwhile."""

    async def hold() -> None:
        async with session.hold():
            await asyncio.Event().wait()

    for ticks in range(40):
        task = asyncio.create_task(hold())
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await driver.check(quiescent=True)


async def test_an_aborted_wait_says_so(session: Session, client: Client, driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    task = asyncio.create_task(session.hold().__aenter__())
    await has_waiting(driver, 1)
    ((waiter,),) = [(await driver.waiting())[1]]
    assert (await client.abort(waiter)).accepted
    with pytest.raises(SessionFencedError):
        await task
    assert await driver.waiting() == ([], [])


async def test_a_run_waits_until_the_lane_is_let_go(session: Session, driver: Driver) -> None:
    async with session.hold():
        handle = await session.run("hi")
        assert (await driver.claim()).runs == ()
    assert (await driver.lease()).run_id == handle.run_id


async def test_a_branch_is_held_alone(session: Session, driver: Driver) -> None:
    side = await session.fork(name="side")
    async with side.hold(timeout=0), session.hold(timeout=0):
        await side.run("hi")
        assert (await driver.claim()).runs == ()


async def test_what_does_not_exist_is_refused(client: Client, driver: Driver) -> None:
    with pytest.raises(UnknownSessionError):
        async with client.session("none").hold():
            pytest.fail("there is nothing to hold")
    await driver.completed()
    with pytest.raises(UnknownBranchError):
        async with client.session("s", branch="none").hold():
            pytest.fail("there is nothing to hold")
    with pytest.raises(InvalidInputError):
        client.session("s").hold(timeout=-1)
    assert await driver.partition.call("EXISTS", driver.keys.session("none")) == 0


async def test_a_hold_is_seen_like_a_run(session: Session, client: Client) -> None:
    async with session.hold() as held:
        assert (await session.status()).active_run == held.run_id
        info = await client.status(held.run_id)
        assert (info.intent, info.state) == ("hold", "running")
        assert info.worker
    assert (await client.status(held.run_id)).state == "completed"
