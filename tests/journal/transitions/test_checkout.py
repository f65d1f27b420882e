"""checkout: the holder of a lease learns what it must know, and the run is running."""

import pytest
from msgspec.structs import replace
from tests.journal.builders import said, started
from tests.journal.driving import Driver

from runlane.journal.errors import SessionFencedError
from runlane.journal.reader import record_of
from runlane.journal.transitions import checkout


async def test_a_first_attempt_finds_an_empty_branch(driver: Driver) -> None:
    lease = await driver.held()
    found = await driver.checkout(lease)
    assert (found.head, found.abort_reason) == ("", None)
    assert [record_of(entry) for entry in found.entries] == await driver.records()
    assert await driver.state(lease.run_id) == "running"
    await driver.check()


async def test_the_next_attempt_finds_what_the_last_one_wrote(driver: Driver) -> None:
    lease = await driver.held()
    head = await driver.begin(lease)
    await driver.abort(lease.run_id, "enough")
    await driver.expire(lease)
    found = await driver.checkout(await driver.lease("w2"))
    assert (found.head, found.abort_reason) == (head, "enough")
    assert [record_of(entry) for entry in found.entries] == await driver.records()


async def test_no_more_than_a_page_comes_at_once(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.append(lease, [said(lease, turn) for turn in range(1, 5)])
    found = await checkout(driver.partition, lease, page=3)
    assert [record_of(entry) for entry in found.entries] == (await driver.records())[:3]


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
