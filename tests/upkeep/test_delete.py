"""Deleting a session: its runs end, nothing of it stays, and nothing of its past comes back."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from tests.holds.places import held, place_of, waiting
from tests.journal.builders import delta, intent_of, outcome_of, said, started
from tests.journal.driving import Driver
from tests.upkeep.support import KEEP_S, Keeper

from runlane.journal.archive import Archive, FileStore
from runlane.journal.errors import (
    ArchiveMissingError,
    ArchiverFencedError,
    NotFoundError,
    ServerUnsuitableError,
    SessionClosedError,
    UnknownSessionError,
    WriteRefusedError,
)
from runlane.journal.reader import record_of_message
from runlane.journal.transitions import (
    StagedRecord,
    delete_rest,
    delete_runs,
    delete_session,
    hold,
    import_records,
)
from runlane.journal.upkeep import delete, resume_deletions
from runlane.journal.upkeep.archiver import drop_batch, read_batch, store_batch
from runlane.journal.wire.records import RunFinished

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def fill(driver: Driver, keeper: Keeper, session: str) -> list[str]:
    """Leave something of every kind in a session; return its runs that have not ended."""
    lease = await keeper.trace(session, checkpoint=True)
    await driver.branch("side", session=session, base=(await driver.run(lease.run_id))["end"])
    await driver.settle((await driver.submit(session=session)).run_id, dead_reason="damaged")
    await keeper.trace(session, checkpoint=True)
    await keeper.archive(session)
    lease = await driver.held(session=session, idempotency_key="k")
    await driver.begin(lease)
    ref = await driver.put_blob(b"much" * 1000, session=session)
    await driver.put_blob(b"nothing names it", session=session)
    asked = said(lease, calls=["look"])
    await driver.append(lease, [asked, intent_of(asked, 0)])
    await driver.append(lease, [replace(outcome_of(asked, 0), full=ref)])
    await driver.publish(lease, delta(lease), text="y")
    waiting_ids = [(await driver.submit(session=session)).run_id for _ in range(3)]
    waiting_ids += [(await driver.submit(session=session, branch="side")).run_id]
    waiting_ids += [(await driver.submit("follow_up", session=session)).run_id]
    return [lease.run_id, *waiting_ids]


async def traces(driver: Driver, session: str) -> list[str]:
    """Return keys whose name or value names a session, but for those of its end and its worker."""
    remembering = (driver.keys.deleted(), driver.keys.deletions(), driver.keys.worker("w1"))
    return [
        name
        for name, value in (await driver.dump()).items()
        if name not in remembering and (session in name or session in repr(value))
    ]


async def test_nothing_stays(driver: Driver, keeper: Keeper) -> None:
    before = set(await driver.dump())
    run_ids = await fill(driver, keeper, "doomed")
    assert len(await traces(driver, "doomed")) > 20
    assert len(keeper.files()) > 0
    await delete(driver.partition, "doomed", keep_s=KEEP_S)
    assert await traces(driver, "doomed") == []
    assert keeper.files() == []
    after = await driver.dump()
    assert not [name for name in after for run_id in run_ids if run_id in name]
    assert set(after) - before == {
        *(driver.keys.deleted(), driver.keys.deletions(), driver.keys.queues()),
        driver.keys.wake("a"),
    }
    await driver.check(quiescent=True)


async def test_another_session_is_not_touched(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace("doomed-2", checkpoint=True)
    await keeper.archive("doomed-2")
    await fill(driver, keeper, "doomed")
    records = await driver.records("doomed-2")
    kept = {name: value for name, value in (await driver.dump()).items() if "doomed-2" in name}
    await delete(driver.partition, "doomed", keep_s=KEEP_S)
    after = await driver.dump()
    assert {name: value for name, value in after.items() if "doomed-2" in name} == kept
    assert await driver.records("doomed-2") == records
    await driver.check(quiescent=True)


@pytest.mark.parametrize("at_once", [1, 2, 100])
async def test_every_run_ends_once_and_is_heard(
    driver: Driver, keeper: Keeper, at_once: int
) -> None:
    run_ids = await fill(driver, keeper, "s")
    lane = await driver.lane()
    async with driver.hearing(driver.keys.events("s"), driver.keys.control("w1")) as heard:
        deletion = await delete_session(driver.partition, "s", runs=at_once)
        while deletion is not None and deletion.runs_left:
            deletion = await delete_session(
                driver.partition, "s", begun=deletion.name, runs=at_once
            )
    told = b"\0".join((b"", run_ids[0].encode(), lane["fence"].encode()))
    assert [each for each in heard if each[:1] == b"\0"] == [told + b"\0the session was deleted"]
    ends = [record_of_message(each[1:]).body for each in heard if b"\0run_finished\0" in each]
    assert sorted(end.run_id for end in ends if isinstance(end, RunFinished)) == sorted(run_ids)
    for run_id in run_ids:
        run = await driver.run(run_id)
        assert (run["state"], run["stop_reason"]) == ("cancelled", "external_abort")
    assert (await driver.claim()).runs == ()
    await driver.check(quiescent=True)


async def test_no_worker_of_its_past_can_write(driver: Driver, keeper: Keeper) -> None:
    lease = await driver.held(session="s")
    await driver.begin(lease)
    begun = await driver.held(session="t")
    await delete(driver.partition, "s", keep_s=KEEP_S)
    await delete(driver.partition, "t", keep_s=KEEP_S)
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: driver.append(lease, [said(lease)]),
        lambda: driver.finish(lease),
        lambda: driver.publish(lease, delta(lease), text="y"),
        lambda: driver.checkout(begun),
        lambda: driver.append(begun, [started(begun)], head=""),
        lambda: driver.abort(lease.run_id),
        lambda: driver.settle(lease.run_id, fence=lease.fence),
    ]

    async def refused() -> None:
        async with driver.unchanged():
            for attempt in attempts:
                with pytest.raises((WriteRefusedError, NotFoundError)):
                    await attempt()
            assert not await driver.hand_back(lease)

    await refused()
    await driver.held(session="s")
    await refused()


async def test_a_session_of_the_same_name_begins_anew_with_higher_revisions(
    driver: Driver, keeper: Keeper
) -> None:
    await keeper.trace(checkpoint=True)
    await keeper.archive()
    await keeper.trace(checkpoint=False)
    await delete(driver.partition, "s", keep_s=KEEP_S)
    await keeper.trace(checkpoint=True)
    await keeper.trace(checkpoint=True)
    records = await driver.records()
    assert [record.revision for record in records] == list(range(10, 20))
    assert (await driver.project()).messages[0].content == "hi"
    await keeper.archive()
    assert keeper.segments() == [(10, 18)]
    assert await driver.records() == records
    await driver.check(quiescent=True)
    await delete(driver.partition, "s", keep_s=KEEP_S)
    assert (await driver.fields(driver.keys.deleted())) == {"s": "19"}


async def test_an_archiver_that_has_not_heard_of_it_is_refused(
    driver: Driver, keeper: Keeper
) -> None:
    await keeper.trace(checkpoint=True)
    await keeper.step(await keeper.claim_one(), count=2)
    claim = await keeper.claim_one()
    batch = await read_batch(driver.partition, claim, count=1)
    await delete(driver.partition, "s", keep_s=0)
    claim = await store_batch(driver.partition, claim, batch)
    with pytest.raises(ArchiverFencedError):
        await drop_batch(driver.partition, claim, batch)
    assert len(keeper.files()) == 1
    assert await resume_deletions(driver.partition, keep_s=0) == 1
    assert keeper.files() == []


async def test_it_takes_no_new_work_meanwhile(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    await delete_session(driver.partition, "s")
    async with driver.unchanged():
        with pytest.raises(SessionClosedError, match="deleting"):
            await driver.submit()
        with pytest.raises(SessionClosedError):
            await driver.branch("side")
        with pytest.raises(SessionClosedError):
            await hold(driver.partition, place_of())
    await keeper.make_due()
    assert await keeper.claim() == []


async def test_what_does_not_exist_is_called_unknown(driver: Driver, keeper: Keeper) -> None:
    async with driver.unchanged():
        with pytest.raises(UnknownSessionError):
            await delete(driver.partition, "s", keep_s=KEEP_S)
    await keeper.trace(checkpoint=True)
    await delete(driver.partition, "s", keep_s=KEEP_S)
    async with driver.unchanged():
        with pytest.raises(UnknownSessionError):
            await delete(driver.partition, "s", keep_s=KEEP_S)


async def test_two_callers_at_once_are_as_good_as_one(driver: Driver, keeper: Keeper) -> None:
    for _ in range(5):
        await fill(driver, keeper, "doomed")
        results = await asyncio.gather(
            *(delete(driver.partition, "doomed", keep_s=KEEP_S) for _ in range(3)),
            return_exceptions=True,
        )
        assert True in results
        assert all(each is True or isinstance(each, UnknownSessionError) for each in results)
        assert await traces(driver, "doomed") == []
        assert keeper.files() == []


async def test_a_late_caller_does_not_touch_the_next_session_of_that_name(
    driver: Driver, keeper: Keeper
) -> None:
    lease = await keeper.trace(checkpoint=True)
    late = await delete_session(driver.partition, "s")
    assert late is not None
    await delete(driver.partition, "s", keep_s=KEEP_S)
    lease = await keeper.trace(checkpoint=True)
    async with driver.unchanged():
        assert await delete_session(driver.partition, "s", begun=late.name) is None
        assert not await delete_runs(driver.partition, late, [lease.run_id])
        assert not await delete_rest(driver.partition, late, keep_ms=KEEP_S)
        assert not await delete(driver.partition, "s", keep_s=KEEP_S, begun=late.name)


async def test_the_same_requests_again_change_nothing(driver: Driver, keeper: Keeper) -> None:
    lease = await keeper.trace(checkpoint=True)
    deletion = await delete_session(driver.partition, "s")
    assert deletion is not None
    sent = driver.last
    assert (await driver.partition.resend(sent))[:2] == [b"OK", deletion.name.encode()]
    await delete_runs(driver.partition, deletion, [lease.run_id])
    sent = driver.last
    async with driver.unchanged():
        assert (await driver.partition.resend(sent))[0] == b"OK"
    await delete_rest(driver.partition, deletion, keep_ms=1000)
    sent = driver.last
    async with driver.unchanged():
        assert (await driver.partition.resend(sent))[0] == b"GONE"


async def test_a_run_of_another_session_that_a_copy_names_is_kept(
    driver: Driver, keeper: Keeper
) -> None:
    lease = await keeper.trace("original", checkpoint=True)
    await keeper.trace("copy", checkpoint=True)
    deletion = await delete_session(driver.partition, "copy")
    assert deletion is not None
    await delete_runs(driver.partition, deletion, [lease.run_id])
    assert (await driver.run(lease.run_id))["session"] == "original"


async def test_holds_of_its_lanes_end(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    first, second = place_of(), place_of()
    got = await held(driver, first)
    await waiting(driver, second)
    await delete(driver.partition, "s", keep_s=KEEP_S)
    assert await traces(driver, "main") == []
    for place, fence in ((first, got.lease.fence), (second, "")):
        with pytest.raises((WriteRefusedError, UnknownSessionError)):
            await hold(driver.partition, place, fence=fence)
    await driver.check()


async def test_what_is_being_imported_can_be_deleted(driver: Driver, keeper: Keeper) -> None:
    record = StagedRecord("main", None, "run_started", "0" * 24, b"\x80")
    await import_records(driver.partition, "doomed", "t", [record], head="")
    await delete(driver.partition, "doomed", keep_s=KEEP_S)
    assert await traces(driver, "doomed") == []


async def test_who_has_no_archive_cannot_delete_what_is_archived(
    driver: Driver, keeper: Keeper
) -> None:
    await keeper.trace("fresh", checkpoint=True)
    await keeper.trace(checkpoint=True)
    await keeper.archive()
    driver.partition.archive = None
    await delete(driver.partition, "fresh", keep_s=KEEP_S)
    async with driver.unchanged():
        with pytest.raises(ArchiveMissingError, match="set RUNLANE_ARCHIVE"):
            await delete(driver.partition, "s", keep_s=KEEP_S)
    driver.partition.archive = Archive(FileStore(keeper.store))
    await delete(driver.partition, "s", keep_s=KEEP_S)
    assert keeper.files() == []


async def test_a_lane_of_a_newer_runlane_stops_it(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    await driver.branch("side")
    await driver.partition.call("HSET", driver.keys.lane("s", "side"), "schema", 2)
    async with driver.unchanged():
        with pytest.raises(ServerUnsuitableError, match="schema 2"):
            await delete(driver.partition, "s", keep_s=KEEP_S)


async def test_a_damaged_run_does_not_stop_it(driver: Driver, keeper: Keeper) -> None:
    lease = await driver.held(session="doomed")
    waiting_id = (await driver.submit(session="doomed")).run_id
    await driver.partition.call("DEL", driver.keys.run(lease.run_id))
    await driver.partition.call("DEL", driver.keys.run(waiting_id))
    await delete(driver.partition, "doomed", keep_s=KEEP_S)
    assert await traces(driver, "doomed") == []


@pytest.mark.parametrize("harm", ["cut", "removed"])
async def test_runs_that_only_a_lost_segment_names_go_too(
    driver: Driver, keeper: Keeper, store: Path, harm: str
) -> None:
    await keeper.trace("other", checkpoint=True)
    await fill(driver, keeper, "gone")
    segment = next(path for path in keeper.files() if path.suffix == ".jsonl")
    if harm == "cut":
        segment.write_bytes(segment.read_bytes()[:100])
    else:
        segment.unlink()
    driver.partition.archive = Archive(FileStore(store))
    await delete(driver.partition, "gone", keep_s=KEEP_S)
    left = [name for name in await driver.dump() if name.startswith(driver.keys.run(""))]
    sessions = {(await driver.fields(name))["session"] for name in left}
    assert sessions == {"other"}
    await driver.check(quiescent=True)
