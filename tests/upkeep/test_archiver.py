"""The archiver: whatever happens to it, every record is readable, in the stream or the archive."""

from typing import cast

import pytest
from msgspec.structs import replace
from tests.journal.builders import intent_of, outcome_of, said
from tests.journal.driving import Driver
from tests.upkeep.support import Keeper

from runlane.journal import tree
from runlane.journal.archive import Archive, FileStore
from runlane.journal.blobs import read_blob
from runlane.journal.errors import (
    ArchiveMissingError,
    ArchiverFencedError,
    RecordMissingError,
)
from runlane.journal.reader import read_records_back
from runlane.journal.transitions import drop_orphans
from runlane.journal.upkeep import archive_session
from runlane.journal.upkeep.archiver import drop_batch, read_batch, store_batch
from runlane.journal.wire.records import ToolCompleted


async def test_every_record_is_read_in_either_direction(driver: Driver, keeper: Keeper) -> None:
    for _ in range(3):
        await keeper.trace(checkpoint=True)
    records = await driver.records()
    assert await keeper.archive(segment_records=4) == 14
    assert keeper.segments() == [(1, 4), (5, 8), (9, 12), (13, 14)]
    await keeper.trace(checkpoint=False)
    found = await driver.records()
    assert found[:15] == records
    assert [record.revision for record in found] == list(range(1, 20))
    back = [record async for record in read_records_back(driver.partition, "s")]
    assert back == found[::-1]
    await driver.check(quiescent=True)


async def test_each_step_goes_on_where_the_last_one_ended(driver: Driver, keeper: Keeper) -> None:
    for _ in range(3):
        await keeper.trace(checkpoint=True)
        await keeper.archive()
    assert keeper.segments() == [(1, 4), (5, 9), (10, 14)]
    assert await keeper.stream() == [15]
    assert len(await driver.records()) == 15


async def test_any_record_can_be_checked_out_and_forked(driver: Driver, keeper: Keeper) -> None:
    lease = await keeper.trace(checkpoint=True)
    end = (await driver.run(lease.run_id))["end"]
    for _ in range(3):
        await keeper.trace(checkpoint=True)
    expected = [
        await tree.check_out(driver.partition, "s", "main", record.record_id)
        for record in await driver.records()
        if record.branch_id == "main"
    ]
    await keeper.archive_all()
    assert await keeper.stream() == []
    for checkout in expected:
        found = await tree.check_out(driver.partition, "s", "main", checkout.record_id)
        assert found == checkout
    await driver.branch("side", base=end)
    await keeper.trace(branch="side", checkpoint=False)
    side = await tree.check_out(driver.partition, "s", "side")
    assert [message.content for message in side.messages] == ["hi", "yo"] * 2
    await driver.check(quiescent=True)


async def test_a_cold_session_takes_little_room_and_wakes_by_itself(
    driver: Driver, keeper: Keeper
) -> None:
    for _ in range(20):
        await keeper.trace(checkpoint=True)
    await keeper.archive_all()
    keys = driver.keys
    size = 0
    for key in (keys.session("s"), keys.log("s"), keys.heads("s"), keys.lane("s", "main")):
        size += await driver.partition.call("MEMORY", "USAGE", key, "SAMPLES", 0)
    assert size < 4096
    assert [key for key in await driver.dump() if ":s" in key and "/main" not in key] == [
        *(keys.heads("s"), keys.log("s"), keys.session("s")),
        keys.sessions(),
    ]
    lease = await driver.held()
    checkout = await driver.checkout(lease)
    assert checkout.entries == []
    projection = await driver.project()
    assert len(projection.messages) == 40
    await driver.begin(lease)
    await driver.finish(lease, entries=[said(lease)])
    await driver.check(quiescent=True)


async def test_an_archiver_that_dies_before_it_says_so_is_repeated(
    driver: Driver, keeper: Keeper
) -> None:
    await keeper.trace(checkpoint=True)
    await keeper.trace(checkpoint=True)
    records = await driver.records()
    dead = await keeper.claim_one()
    await store_batch(driver.partition, dead, await read_batch(driver.partition, dead, count=4))
    assert keeper.segments() == [(1, 4)]
    assert await driver.records() == records
    assert await keeper.archive() == 9
    assert keeper.segments() == [(1, 9)]
    assert await driver.records() == records


async def test_what_overtaken_archivers_leave_is_never_read_and_goes(
    driver: Driver, keeper: Keeper
) -> None:
    partition = driver.partition
    await keeper.trace(checkpoint=True)
    await keeper.archive()
    await keeper.trace(checkpoint=True)
    overtaken = await keeper.claim_one()
    batch = await read_batch(partition, overtaken, count=3)
    await keeper.trace(checkpoint=True)
    await keeper.archive()
    late = await store_batch(partition, overtaken, batch)
    with pytest.raises(ArchiverFencedError):
        await drop_batch(partition, late, batch)
    records = await driver.records()
    assert len(records) == 15
    assert keeper.segments() == [(1, 4), (5, 7), (5, 14)]
    await keeper.trace(checkpoint=True)
    await keeper.archive()
    assert keeper.segments() == [(1, 4), (5, 14), (15, 19)]
    assert (await driver.records())[:15] == records


async def test_a_lane_that_wakes_meanwhile_keeps_its_records(
    driver: Driver, keeper: Keeper
) -> None:
    await keeper.trace(checkpoint=True)
    await keeper.trace(checkpoint=False)
    driver.partition.cold_ms = 0
    claim = await keeper.claim_one()
    assert claim.upto == 9
    await driver.submit()
    assert await archive_session(driver.partition, claim) == 9
    assert await keeper.stream() == [5, 6, 7, 8, 9, 10]
    lease = await driver.lease()
    await driver.begin(lease)
    await driver.finish(lease, entries=[said(lease)])
    records = await driver.records()
    assert await keeper.archive() == 4
    assert keeper.segments() == [(1, 9), (10, 13)]
    assert await keeper.stream() == []
    assert await driver.records() == records


async def test_a_gap_in_the_stream_stops_the_archiver(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    stream = cast("bytes", (await driver.redis.xrange(driver.keys.log("s"), count=3))[-1][0])
    await driver.partition.call("XDEL", driver.keys.log("s"), stream)
    await keeper.step(await keeper.claim_one(), count=4)
    with pytest.raises(RecordMissingError, match="record 3 is gone"):
        await keeper.archive()
    assert keeper.segments() == [(1, 2)]


async def test_blobs_go_before_the_records_that_name_them(driver: Driver, keeper: Keeper) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    content = b"much" * 1000
    ref = await driver.put_blob(content)
    asked = said(lease, calls=["look", "look"])
    results = [replace(outcome_of(asked, index), full=ref) for index in range(2)]
    await driver.append(lease, [asked, *(intent_of(asked, index) for index in range(2))])
    await driver.append(lease, [results[0]])
    await driver.append(lease, [results[1]])
    await driver.finish(lease, entries=[said(lease, 2)])
    blob = driver.keys.blob("s", ref.digest)
    assert await driver.partition.call("HGET", blob, "refs") == b"2"

    driver.partition.cold_ms = 0
    claim = await keeper.claim_one()
    claim = await keeper.step(claim, count=6)
    assert await driver.partition.call("HGET", blob, "refs") == b"1"
    await archive_session(driver.partition, claim)
    assert await driver.partition.call("HGET", blob, "refs") == b"0"
    assert await read_blob(driver.partition, "s", ref.digest) == content
    assert await drop_orphans(driver.partition, age_s=0) == 1
    assert not await driver.partition.call("EXISTS", blob)
    assert await read_blob(driver.partition, "s", ref.digest) == content
    assert len([r for r in await driver.records() if isinstance(r.body, ToolCompleted)]) == 2
    await driver.check(quiescent=True)


async def test_who_has_no_archive_is_told_where_the_records_are(
    driver: Driver, keeper: Keeper
) -> None:
    await keeper.trace(checkpoint=True)
    await keeper.archive()
    driver.partition.archive = None
    with pytest.raises(ArchiveMissingError, match="set RUNLANE_ARCHIVE"):
        await driver.records()
    await driver.project()  # needs none of them
    driver.partition.archive = Archive(FileStore(keeper.store))
    assert len(await driver.records()) == 5
