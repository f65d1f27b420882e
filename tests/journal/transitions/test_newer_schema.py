"""A lane that a newer runlane has written is left alone by every script."""

from collections.abc import Awaitable, Callable

import pytest
from tests.holds.places import place_of
from tests.journal.builders import delta, said
from tests.journal.driving import RETRY_S, Driver

from runlane.journal.errors import ServerUnsuitableError
from runlane.journal.lease import Lease
from runlane.journal.transitions import hold, keep_lost, put_blob, release, steal
from runlane.journal.transitions.entries import chained
from runlane.journal.wire.tree import BranchCreated, BranchIntent, Jump

Call = Callable[[Driver, Lease], Awaitable[object]]

CALLS: dict[str, Call] = {
    "submit": lambda driver, _: driver.submit(),
    "abort": lambda driver, lease: driver.abort(lease.run_id),
    "append": lambda driver, lease: driver.append(lease, [said(lease)]),
    "checkout": lambda driver, lease: driver.checkout(lease),
    "finish": lambda driver, lease: driver.finish(lease),
    "hand_back": lambda driver, lease: driver.hand_back(lease),
    "publish": lambda driver, lease: driver.publish(lease, delta(lease), text="y"),
    "put_blob": lambda driver, lease: put_blob(
        driver.partition, lease, b"much", "text/plain", retry_s=RETRY_S
    ),
    "create_branch": lambda driver, _: driver.branch("new"),
    "promote": lambda driver, _: driver.promote("side"),
    "hold": lambda driver, _: hold(driver.partition, place_of()),
    "release": lambda driver, lease: release(driver.partition, lease.run_id, retry_s=RETRY_S),
    "steal": lambda driver, lease: steal(
        driver.partition, lease.run_id, branch_id="main", reason="it hangs"
    ),
    "steer": lambda driver, _: driver.steer(),
    "keep_lost": lambda driver, _: keep_lost(
        driver.partition,
        "s",
        Jump(branch_id="new", base_id="", base_branch_id="", source_branch_id="main"),
        chained("new", "", [BranchCreated(intent=BranchIntent.LOST, source_branch_id="main")]),
        request_id="r",
        agent="a",
        revision=1,
        last_run=None,
    ),
    "settle": lambda driver, lease: driver.settle(lease.run_id, fence=lease.fence),
}


@pytest.mark.parametrize("name", CALLS)
async def test_it_is_refused_before_anything_is_written(driver: Driver, name: str) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.branch("side")
    for branch in ("main", "new"):
        await driver.partition.call("HSET", driver.keys.lane("s", branch), "schema", 2)
    async with driver.unchanged():
        with pytest.raises(ServerUnsuitableError, match="schema 2"):
            await CALLS[name](driver, lease)
    assert driver.last.code == "NEWER_SCHEMA"


async def test_renew_calls_its_run_lost(driver: Driver) -> None:
    lease = await driver.held()
    await driver.partition.call("HSET", driver.keys.lane("s", "main"), "schema", 2)
    due_ms = await driver.due_ms(lease)
    assert (await driver.renew(lease, lease_ms=600_000)).lost == (lease.run_id,)
    assert await driver.due_ms(lease) <= due_ms


async def test_claim_leaves_it_for_a_newer_worker_and_takes_the_rest(driver: Driver) -> None:
    newer = (await driver.submit()).run_id
    await driver.redis.zadd(driver.keys.queue("a"), {newer: 1})
    await driver.partition.call("HSET", driver.keys.lane("s", "main"), "schema", 2)
    lane, run = await driver.lane(), await driver.run(newer)
    ours = (await driver.submit(session="t")).run_id
    claim = await driver.claim()
    assert [claimed.lease.run_id for claimed in claim.runs] == [ours]
    assert (await driver.lane(), await driver.run(newer)) == (lane, run)
    assert newer in await driver.queued()
    assert claim.wait_s is not None
    assert claim.wait_s > 0
