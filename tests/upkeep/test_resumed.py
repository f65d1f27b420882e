"""A deletion or an archiver that dies before any of its steps: the next one goes on to the end."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from tests.journal.builders import said
from tests.journal.driving import Driver
from tests.upkeep.support import KEEP_S, Keeper

from runlane.journal.archive import Archive, FileStore
from runlane.journal.archive.paths import session_folder
from runlane.journal.lua.scripts import Script
from runlane.journal.partition import Arg, Partition
from runlane.journal.transitions import delete_session
from runlane.journal.upkeep import archive_session, delete, resume_deletions

STEPS_MAX: Final = 100


class KilledError(Exception):
    """The process is gone."""


class MortalPartition(Partition):
    """A process that dies before it sends anything after `left` more requests."""

    left = 0

    async def _once(self, command: tuple[Arg, ...], script: Script | None) -> Any:
        if self.left == 0:
            raise KilledError
        self.left -= 1
        return await super()._once(command, script)


@asynccontextmanager
async def mortal(keeper: Keeper, left: int) -> AsyncGenerator[MortalPartition, None]:
    driver = keeper.driver
    partition = MortalPartition(
        driver.partition.url,
        prefix=driver.prefix,
        retry_s=10,
        archive=Archive(FileStore(keeper.store)),
    )
    partition.left = left
    yield partition
    await partition.close()


async def doomed(driver: Driver, keeper: Keeper) -> None:
    """A session with archived records, others, and a run that goes on."""
    for _ in range(2):
        await keeper.trace("doomed", checkpoint=True)
    await keeper.archive("doomed")
    lease = await driver.held(session="doomed", idempotency_key="k")
    await driver.begin(lease)
    await driver.append(lease, [said(lease)])
    await driver.submit(session="doomed")


async def test_a_deletion_that_dies_anywhere_is_resumed(driver: Driver, keeper: Keeper) -> None:
    left = 0
    for left in range(STEPS_MAX):
        await doomed(driver, keeper)
        async with mortal(keeper, left) as partition:
            try:
                await delete(partition, "doomed", keep_s=KEEP_S)
            except KilledError:
                pass
            else:
                break
        if await driver.partition.call("HGET", driver.keys.session("doomed"), "deletion"):
            assert await resume_deletions(driver.partition, keep_s=KEEP_S) == 0
            await driver.partition.call("ZADD", driver.keys.deletions(), "XX", 1, "doomed")
            assert await resume_deletions(driver.partition, keep_s=KEEP_S) == 1
        elif await driver.partition.call("EXISTS", driver.keys.session("doomed")):
            await delete(driver.partition, "doomed", keep_s=KEEP_S)
        assert [name for name in await driver.dump() if "doomed" in name or ":run:" in name] == []
        assert keeper.files() == []
        await driver.check(quiescent=True)
    assert 8 < left < STEPS_MAX - 1


async def test_a_deletion_that_dies_between_two_files_is_resumed(
    driver: Driver, keeper: Keeper
) -> None:
    for _ in range(4):
        await keeper.trace("doomed", checkpoint=True)
        await keeper.archive("doomed")
    await delete_session(driver.partition, "doomed", resume_ms=0)
    sorted((keeper.store / session_folder("doomed")).iterdir())[1].unlink()
    driver.partition.archive = Archive(FileStore(keeper.store))
    assert await resume_deletions(driver.partition, keep_s=KEEP_S) == 1
    assert [name for name in await driver.dump() if "doomed" in name] == []
    assert keeper.files() == []


async def test_an_archiver_that_dies_anywhere_loses_nothing(driver: Driver, keeper: Keeper) -> None:
    left = 0
    for left in range(STEPS_MAX):
        session = f"s{left}"
        for _ in range(3):
            await keeper.trace(session, checkpoint=True)
        records = await driver.records(session)
        claim = await keeper.claim_one(session)
        async with mortal(keeper, left) as partition:
            try:
                await archive_session(partition, claim, segment_records=5)
            except KilledError:
                pass
            else:
                break
        assert await driver.records(session) == records
        await keeper.make_due(session)
        for again in await keeper.claim():
            await archive_session(driver.partition, again, segment_records=5)
        assert await driver.records(session) == records
        assert await keeper.stream(session) == [15]
        spans = keeper.segments(session)
        assert [first for first, _ in spans] == [1, *(last + 1 for _, last in spans[:-1])]
    assert 5 < left < STEPS_MAX - 1
    await driver.check(quiescent=True)


@pytest.mark.parametrize("kept_s", [0, KEEP_S])
async def test_a_deleted_session_is_forgotten_in_the_end(
    driver: Driver, keeper: Keeper, kept_s: int
) -> None:
    await keeper.trace(checkpoint=True)
    await delete(driver.partition, "s", keep_s=kept_s)
    assert await driver.fields(driver.keys.deleted()) == {"s": "5"}
    assert await resume_deletions(driver.partition, keep_s=kept_s) == (kept_s == 0)
    remembered = await driver.fields(driver.keys.deleted())
    assert remembered == ({} if kept_s == 0 else {"s": "5"})
    assert bool(await driver.redis.zcard(driver.keys.deletions())) == bool(kept_s)


async def test_one_that_fails_lets_the_others_go_on(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace("archived", checkpoint=True)
    await keeper.archive("archived")
    await keeper.trace("fresh", checkpoint=True)
    for session in ("archived", "fresh"):
        await delete_session(driver.partition, session, resume_ms=0)
    archive, driver.partition.archive = driver.partition.archive, None
    with pytest.raises(Exception, match="set RUNLANE_ARCHIVE"):
        await resume_deletions(driver.partition, keep_s=KEEP_S)
    assert await resume_deletions(driver.partition, keep_s=KEEP_S) == 1
    assert not await driver.partition.call("EXISTS", driver.keys.session("fresh"))
    driver.partition.archive = archive
    await driver.partition.call("ZADD", driver.keys.deletions(), "XX", 1, "archived")
    assert await resume_deletions(driver.partition, keep_s=KEEP_S) == 1
    assert keeper.files() == []
