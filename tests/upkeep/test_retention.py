"""What has had its time goes, and nothing that is in use does."""

from tests.holds.places import held, place_of, waiting
from tests.journal.driving import Driver
from tests.upkeep.support import KEEP_S, Keeper

from runlane.journal.transitions import delete_session, drop_dead, forget_deleted
from runlane.journal.upkeep import drop_expired

OLD_MS = 1000 * (KEEP_S + 10)


async def age(driver: Driver, keeper: Keeper, session: str = "s", ms: int = OLD_MS) -> None:
    """Let the last submit and the last end of a session be so much longer ago."""
    await driver.redis.zincrby(driver.keys.sessions(), -ms, session)
    if "ended_ms" in await keeper.session(session):
        await driver.partition.call("HINCRBY", driver.keys.session(session), "ended_ms", -ms)


async def drop(driver: Driver, keep_sessions_s: int = KEEP_S) -> int:
    return await drop_expired(driver.partition, keep_sessions_s=keep_sessions_s, keep_dead_s=KEEP_S)


async def sessions(driver: Driver) -> set[str]:
    return {name.decode() for name in await driver.redis.zrange(driver.keys.sessions(), 0, -1)}


async def test_a_session_that_nobody_uses_goes(driver: Driver, keeper: Keeper) -> None:
    for number in range(5):
        await keeper.trace(f"old-{number}", checkpoint=True)
        await keeper.archive(f"old-{number}")
        await age(driver, keeper, f"old-{number}")
    await keeper.trace("young", checkpoint=True)
    await keeper.archive("young")
    assert await drop(driver) == 5
    assert await sessions(driver) == {"young"}
    assert len(keeper.files()) == 1
    await driver.check(quiescent=True)


async def test_by_default_sessions_stay_for_ever(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    await age(driver, keeper, ms=10**12)
    async with driver.unchanged():
        assert await drop(driver, keep_sessions_s=0) == 0


async def test_a_run_that_ended_lately_counts_as_use(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    await driver.redis.zincrby(driver.keys.sessions(), -OLD_MS, "s")
    async with driver.unchanged():
        assert await drop(driver) == 0
    assert driver.last.reply == [b"IN_USE", b""]


async def test_what_is_in_use_is_kept_however_old(driver: Driver, keeper: Keeper) -> None:
    names = ("active", "queued", "follow-up", "on-a-branch", "held", "hold-waits")
    for session in (*names, "unused"):
        await keeper.trace(session, checkpoint=True)
    await driver.branch("side", session="on-a-branch")
    lease = await driver.held(session="active")
    await driver.begin(lease)
    await driver.held(session="follow-up")
    await driver.submit("follow_up", session="follow-up")
    await driver.held(session="hold-waits")
    await driver.submit(session="queued")
    await driver.submit(session="on-a-branch", branch="side")
    await held(driver, place_of("held"))
    await waiting(driver, place_of("hold-waits"))
    for session in (*names, "unused"):
        await age(driver, keeper, session)
    assert await drop(driver) == 1
    assert await sessions(driver) == set(names)
    await driver.check()


async def test_many_that_are_in_use_hide_no_other(driver: Driver, keeper: Keeper) -> None:
    for number in range(120):
        await driver.submit(session=f"busy-{number}", agent="b")
        await age(driver, keeper, f"busy-{number}", 2 * OLD_MS)
    await keeper.trace(checkpoint=True)
    await age(driver, keeper)
    assert await drop(driver) == 1
    assert len(await sessions(driver)) == 120


async def test_a_name_without_a_session_does_no_harm(driver: Driver, keeper: Keeper) -> None:
    await driver.redis.zadd(driver.keys.sessions(), {"nothing": 1})
    assert await drop(driver) == 0


async def test_a_use_that_comes_first_wins(driver: Driver, keeper: Keeper) -> None:
    """Whoever looked before the run was asked for finds it when it begins to delete."""
    await keeper.trace(checkpoint=True)
    await age(driver, keeper)
    await driver.submit()
    assert await delete_session(driver.partition, "s", unused_ms=1000 * KEEP_S) is None
    assert driver.last.reply == [b"IN_USE", b"main"]
    await driver.check()


async def test_a_deletion_under_way_goes_on_whatever_the_session_was(
    driver: Driver, keeper: Keeper
) -> None:
    await keeper.trace(checkpoint=True)
    await delete_session(driver.partition, "s")
    assert await delete_session(driver.partition, "s", unused_ms=1000 * KEEP_S) is not None


async def test_old_dead_letters_go(driver: Driver, keeper: Keeper) -> None:
    old = [(await driver.submit(session="old")).run_id for _ in range(3)]
    for run_id in old:
        await driver.settle(run_id, dead_reason="damaged")
        await driver.redis.zadd(driver.keys.dead(), {run_id: 1})
    young = (await driver.submit(session="young")).run_id
    await driver.settle(young, dead_reason="damaged")
    assert await drop_dead(driver.partition, age_s=KEEP_S, count=2) == 2
    assert await drop(driver) == 0
    assert await driver.redis.zrange(driver.keys.dead(), 0, -1) == [young.encode()]
    assert not await driver.partition.call("EXISTS", *map(driver.keys.dead_letter, old))
    await driver.check(quiescent=True)


async def test_old_blobs_that_no_record_names_go(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    ref = await driver.put_blob(b"much" * 1000)
    await drop(driver)
    assert not await driver.partition.call("EXISTS", driver.keys.blob("s", ref.digest))


async def test_only_the_end_that_was_seen_is_forgotten(driver: Driver, keeper: Keeper) -> None:
    await driver.partition.call("HSET", driver.keys.deleted(), "s", 7)
    async with driver.unchanged():
        assert not await forget_deleted(driver.partition, "s", revision="5")
    assert await forget_deleted(driver.partition, "s", revision="7")
    sent = driver.last
    async with driver.unchanged():
        assert (await driver.partition.resend(sent))[0] == b"KEPT"
