"""checkout: the holder of a lease learns what it must know, and the run is running."""

import pytest
from msgspec.structs import replace
from tests.journal.builders import said, started
from tests.journal.driving import Driver

from runlane.journal.errors import SessionFencedError
from runlane.journal.reader import entry_of, record_of
from runlane.journal.transitions import Checkout, checkout
from runlane.journal.wire.records import Record


def records_in(found: Checkout) -> list[Record]:
    return [record_of(entry_of(entry)) for entry in found.entries]


async def test_a_first_attempt_finds_an_empty_branch(driver: Driver) -> None:
    lease = await driver.held()
    found = await driver.checkout(lease)
    assert (found.head, found.abort_reason, found.entries) == ("", None, [])
    assert await driver.state(lease.run_id) == "running"
    await driver.check()


async def test_the_next_attempt_finds_what_the_last_one_wrote(driver: Driver) -> None:
    lease = await driver.held()
    head = await driver.begin(lease)
    await driver.abort(lease.run_id, "enough")
    await driver.expire(lease)
    found = await driver.checkout(await driver.lease("w2"))
    assert (found.head, found.abort_reason) == (head, "enough")
    queued, start, _ = await driver.records()  # the abort came after the head
    assert records_in(found) == [start, queued]


async def test_no_more_than_a_page_comes_at_once_from_the_head_back(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.append(lease, [said(lease, turn) for turn in range(1, 5)])
    found = await checkout(driver.partition, lease, page=3)
    assert records_in(found) == (await driver.records())[:-4:-1]


async def test_what_is_older_than_the_last_checkpoint_does_not_come(driver: Driver) -> None:
    await driver.completed()
    await driver.completed_with_checkpoint()
    await driver.completed()
    found = await driver.checkout(await driver.held())
    kinds = [record.kind for record in records_in(found)]
    assert kinds == ["run_finished", "run_started", "run_queued", "checkpoint"]


async def test_a_branch_begins_without_the_checkpoint_of_its_source(driver: Driver) -> None:
    await driver.completed_with_checkpoint()
    base = driver.heads["s", "main"]
    await driver.branch("side", base=base)
    await driver.completed()
    found = await driver.checkout(await driver.held(branch="side"))
    first, *older = records_in(found)
    assert (first.record_id, first.kind, first.parent_id) == (found.head, "branch_created", base)
    assert older[0].record_id == base


async def test_what_the_stream_has_no_more_does_not_come(driver: Driver) -> None:
    await driver.completed()
    lease = await driver.held()
    last = (await driver.records())[-1]
    await driver.partition.call("XTRIM", driver.keys.log("s"), "MINID", last.revision + 1)
    found = await driver.checkout(lease)
    assert (found.head, found.entries) == (driver.heads["s", "main"], [])


@pytest.mark.parametrize("forged", ["", "1:0000", "2:{nonce}"])
async def test_another_fence_gets_nothing(driver: Driver, forged: str) -> None:
    lease = await driver.held()
    other = replace(lease, fence=forged.format(nonce=lease.fence.partition(":")[2]))
    async with driver.unchanged():
        with pytest.raises(SessionFencedError) as refused:
            await driver.checkout(other)
    assert refused.value.fence_held == lease.fence


async def test_the_time_of_the_first_start_stays(driver: Driver) -> None:
    lease = await driver.held()
    await driver.checkout(lease)
    await driver.partition.call("HSET", driver.keys.run(lease.run_id), "started_ms", 7)
    await driver.expire(lease)
    await driver.checkout(await driver.lease())
    assert (await driver.run(lease.run_id))["started_ms"] == "7"


async def test_the_inc_of_the_server_is_that_of_what_it_writes(driver: Driver) -> None:
    lease = await driver.held()
    inc = (await driver.checkout(lease)).inc
    await driver.append(lease, [started(lease)], progress=False)
    assert {record.inc for record in await driver.records(lease.session_id)} == {inc}
