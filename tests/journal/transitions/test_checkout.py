"""checkout: the holder of a lease learns what it must know, and the run is running."""

import pytest
from msgspec.structs import replace
from tests.journal.builders import said, started, taken_over
from tests.journal.driving import Driver

from runlane.journal.errors import SessionFencedError
from runlane.journal.reader import record_of
from runlane.journal.transitions import checkout


async def test_a_first_attempt_finds_an_empty_branch(driver: Driver) -> None:
    lease = await driver.held()
    found = await driver.checkout(lease)
    assert (found.head, found.abort_reason, found.server_changed) == ("", None, False)
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


async def test_a_changed_server_is_reported_until_the_run_gets_further(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.append(lease, [said(lease)])
    run_key = driver.keys.run(lease.run_id)
    await driver.partition.call("HSET", run_key, "inc", "1")  # as written by another server

    async def next_attempt_finds(changed: bool) -> None:
        nonlocal lease
        await driver.expire(lease)
        lease = await driver.lease("w2")
        assert (await driver.checkout(lease)).server_changed is changed
        repeated = await driver.partition.resend(driver.last)
        assert repeated == driver.last.reply

    await next_attempt_finds(changed=True)
    await driver.append(lease, [taken_over(lease)], progress=False)
    await next_attempt_finds(changed=True)
    await driver.append(lease, [taken_over(lease), said(lease, 2)])
    await next_attempt_finds(changed=False)
    await driver.check()


async def test_the_same_server_is_not_reported(driver: Driver) -> None:
    lease = await driver.held()
    await driver.checkout(lease)
    await driver.append(lease, [started(lease)], progress=False)
    await driver.expire(lease)
    assert not (await driver.checkout(await driver.lease("w2"))).server_changed
