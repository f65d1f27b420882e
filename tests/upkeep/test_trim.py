"""trim: what is archived is noted, and only that leaves the stream, and only what no lane needs."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.journal.driving import Driver
from tests.upkeep.support import Keeper

from runlane.journal.errors import ArchiveError, ArchiverFencedError, ServerUnsuitableError
from runlane.journal.ownership import own_archive
from runlane.journal.transitions import ArchiveClaim, archive_release, trim
from runlane.journal.upkeep.archiver import read_batch, store_batch


async def archived(keeper: Keeper, claim: ArchiveClaim, count: int = 100) -> ArchiveClaim:
    """Write the next segment of a session; the server does not know of it."""
    partition = keeper.driver.partition
    await own_archive(partition)
    return await store_batch(partition, claim, await read_batch(partition, claim, count=count))


async def test_archived_records_leave_the_stream(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    records = await driver.records()
    claim = await archived(keeper, await keeper.claim_one())
    assert await trim(driver.partition, claim, upto=4) is None
    assert await keeper.stream() == [5]
    session = await keeper.session()
    assert (session["trimmed"], session["archived"], session["segment"]) == (
        *("4", "4"),
        claim.segment,
    )
    assert await driver.records() == records
    await driver.check(quiescent=True)


async def test_an_overtaken_archiver_is_refused(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    claim = await archived(keeper, await keeper.claim_one())
    taken = await keeper.claim_one(worker="w2")
    async with driver.unchanged():
        with pytest.raises(ArchiverFencedError, match=taken.token):
            await trim(driver.partition, claim, upto=4)
    await archive_release(driver.partition, taken)
    async with driver.unchanged():
        with pytest.raises(ArchiverFencedError, match="nobody"):
            await trim(driver.partition, claim, upto=4)


async def test_what_is_not_archived_stays(driver: Driver, keeper: Keeper) -> None:
    for _ in range(3):
        await keeper.trace(checkpoint=True)
    claim = await keeper.claim_one()
    first = await archived(keeper, claim, count=4)
    second = await archived(keeper, replace(first, trimmed=4), count=4)
    shorter = await archived(keeper, claim, count=2)

    async def refused(claim: ArchiveClaim, upto: int, known: int) -> None:
        async with driver.unchanged():
            with pytest.raises(ArchiveError, match=f"is archived up to revision {known}"):
                await trim(driver.partition, claim, upto=upto)
        assert driver.last.code == "UNARCHIVED"

    changed: list[dict[str, Any]] = [
        {"archived": 5},  # more than its segment has
        {"archived": 3},
        {"segment": "no/segment.jsonl"},
        {"segment": None},
    ]
    for change in changed:
        await refused(replace(first, **change), 4, 0)
    await refused(first, 5, 0)
    await refused(second, 4, 0)  # the one before it is not known
    assert await trim(driver.partition, first, upto=4) is None
    await refused(replace(second, archived=first.archived, segment=first.segment), 5, 4)
    await refused(shorter, 2, 4)  # never backwards
    assert await trim(driver.partition, second, upto=8) is None
    beyond = "/".join((*(first.segment or "").split("/")[:2], f"9-99-{'0' * 12}.jsonl"))
    await refused(replace(second, segment=beyond, archived=99), 8, 8)


async def test_what_a_lane_needs_stays(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    await keeper.trace(checkpoint=False)
    driver.partition.cold_ms = 0
    claim = await archived(keeper, await keeper.claim_one())
    assert claim.archived == 9
    await driver.submit()
    async with driver.unchanged():
        assert await trim(driver.partition, claim, upto=9) == 5
    async with driver.unchanged():
        assert await trim(driver.partition, claim, upto=5) == 5
    assert driver.last.code == "HEAD"
    assert await trim(driver.partition, claim, upto=4) is None
    assert await keeper.stream() == [5, 6, 7, 8, 9, 10]
    assert (await keeper.session())["archived"] == "9"
    await driver.check()


async def test_the_same_request_again_changes_nothing(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    claim = await archived(keeper, await keeper.claim_one())
    await trim(driver.partition, claim, upto=4)
    sent = driver.last
    async with driver.unchanged():
        assert (await driver.partition.resend(sent))[0] == b"DUP"


async def test_the_last_id_of_an_empty_stream_is_remembered(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    await keeper.archive_all()
    assert await keeper.stream() == []
    with pytest.raises(ServerUnsuitableError, match="smaller than"):
        await driver.partition.call("XADD", driver.keys.log("s"), "3-1", "b", "main")
    assert (await driver.records())[-1].revision == 5


async def test_a_step_extends_the_lease(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    claim = await archived(keeper, await keeper.claim_one(lease_ms=500))
    before = await keeper.now_ms()
    await trim(driver.partition, replace(claim, lease_ms=60_000), upto=4)
    assert (await keeper.due())["s"] >= before + 60_000


async def test_a_lane_of_a_newer_runlane_is_left_alone(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    claim = await archived(keeper, await keeper.claim_one())
    await driver.partition.call("HSET", driver.keys.lane("s", "main"), "schema", 2)
    async with driver.unchanged():
        with pytest.raises(ServerUnsuitableError, match="schema 2"):
            await trim(driver.partition, claim, upto=4)
        with pytest.raises(ServerUnsuitableError, match="schema 2"):
            await archive_release(driver.partition, claim)
    await keeper.make_due()
    assert await keeper.claim("w2") == []
    assert (await keeper.due())["s"] > await keeper.now_ms()
