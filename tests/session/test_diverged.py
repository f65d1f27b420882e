"""What a worker knows of a branch, against a server that went back to an earlier state."""

from collections.abc import Sequence

import pytest
from tests.journal.builders import intent_of, outcome_of, said, started
from tests.journal.driving import RETRY_S, Driver
from tests.journal.failover import fail_over, take_snapshot

from runlane.journal import tree
from runlane.journal.lease import Lease
from runlane.journal.reader import PAGE, read_entries_back
from runlane.journal.transitions import append, put_blob
from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import AnyBody, MessageAppended, RunStarted, ToolCompleted
from runlane.journal.wire.tree import BranchIntent, Checkpoint
from runlane.worker.session.diverged import keep_aside, lost_suffix
from runlane.worker.session.trail import Loss, Trail, id_of


async def trail_of(driver: Driver, lease: Lease) -> Trail:
    """Return what a worker that checks out now knows."""
    head = (await driver.checkout(lease)).head
    entries = await read_entries_back(driver.partition, lease.session_id, upto=None, count=PAGE)
    own = [entry for entry in reversed(entries) if entry.branch == lease.branch_id]
    return Trail(lease.branch_id, head, own)


async def write(driver: Driver, lease: Lease, trail: Trail, bodies: Sequence[AnyBody]) -> None:
    head = trail.head
    appended = await append(
        driver.partition, lease, bodies, head=head, progress=True, retry_s=RETRY_S
    )
    trail.add(appended, base=head)
    driver.heads[lease.session_id, lease.branch_id] = appended.head


async def loss_of(driver: Driver, trail: Trail) -> Loss:
    loss = await trail.find_loss(driver.partition, "s")
    assert loss is not None
    return loss


def kinds(loss: Loss) -> list[str]:
    return [entry.kind for entry in loss.entries]


async def test_nothing_is_lost_where_nothing_happened(driver: Driver) -> None:
    lease = await driver.held()
    trail = await trail_of(driver, lease)
    assert await trail.find_loss(driver.partition, "s") is None
    await write(driver, lease, trail, [started(lease)])
    assert trail.head == await tree.read_head(driver.partition, "s", "main")
    assert await trail.find_loss(driver.partition, "s") is None


async def test_nothing_is_lost_where_somebody_else_goes_on(driver: Driver) -> None:
    old = await driver.held()
    trail = await trail_of(driver, old)
    await write(driver, old, trail, [started(old)])
    await driver.expire(old)
    new = await driver.lease("w2")
    await driver.checkout(new)
    await driver.append(new, [said(new)])
    assert await trail.find_loss(driver.partition, "s") is None


@pytest.mark.parametrize("kept", range(6))
async def test_the_first_lost_record_is_found_wherever_it_is(driver: Driver, kept: int) -> None:
    lease = await driver.held()
    trail = await trail_of(driver, lease)
    snapshot = await take_snapshot(driver.redis)
    for turn in range(6):
        body = said(lease, turn) if turn else started(lease)
        await write(driver, lease, trail, [body])
        if turn + 1 == kept:
            snapshot = await take_snapshot(driver.redis)
    await fail_over(driver.redis, snapshot)
    loss = await loss_of(driver, trail)
    assert kinds(loss) == (["run_started"] + 5 * ["message_appended"])[kept:]
    assert loss.base_id == await tree.read_head(driver.partition, "s", "main")
    assert loss.rooted


async def test_what_is_appended_again_has_the_same_hashes(driver: Driver) -> None:
    lease = await driver.held()
    trail = await trail_of(driver, lease)
    snapshot = await take_snapshot(driver.redis)
    message = said(lease, calls=["a"])
    await write(driver, lease, trail, [started(lease)])
    await write(driver, lease, trail, [message, intent_of(message, 0)])
    lost_head = trail.head
    await fail_over(driver.redis, snapshot)
    loss = await loss_of(driver, trail)
    written = await lost_suffix(driver.partition, lease, loss)
    assert written is not None
    appended = await append(
        driver.partition,
        lease,
        (*written, outcome_of(message, 0)),
        head=loss.base_id,
        progress=True,
        retry_s=RETRY_S,
    )
    trail.add(appended, base=loss.base_id)
    records = [record for record in await driver.records() if record.branch_id == "main"]
    assert [type(record.body) for record in records[:2]] == [RunStarted, MessageAppended]
    assert records[2].record_id.partition(".")[2] == lost_head.partition(".")[2]
    assert records[2].record_id != lost_head
    assert trail.head == records[-1].record_id
    assert await trail.find_loss(driver.partition, "s") is None
    run = await driver.run(lease.run_id)
    assert run["begin"] == records[0].record_id
    driver.heads["s", "main"] = trail.head
    await driver.finish(lease)
    await driver.check(quiescent=True)


async def test_who_does_not_hold_the_lane_appends_nothing_again(driver: Driver) -> None:
    lease = await driver.held()
    trail = await trail_of(driver, lease)
    snapshot = await take_snapshot(driver.redis)
    await write(driver, lease, trail, [started(lease)])
    await fail_over(driver.redis, snapshot)
    await driver.expire(lease)
    await driver.claim("w2")
    async with driver.unchanged():
        assert await lost_suffix(driver.partition, lease, await loss_of(driver, trail)) is None


async def test_the_same_records_are_kept_once_and_others_beside_them(driver: Driver) -> None:
    await driver.completed()
    snapshot = await take_snapshot(driver.redis)
    lease = await driver.held()
    late = await trail_of(driver, lease)
    await write(driver, lease, late, [started(lease)])
    early = await trail_of(driver, lease)
    await write(driver, lease, late, [said(lease)])
    await fail_over(driver.redis, snapshot)
    names: list[str | None] = []
    for trail in (late, late, early, early, late):
        loss = await loss_of(driver, trail)
        error = await keep_aside(driver.partition, lease, "a", trail, loss)
        assert error is not None
        assert (error.session_id, error.branch_id) == ("s", "main")
        assert (error.last_known, error.surviving) == (trail.head, loss.base_id)
        names.append(error.lost_branch)
    assert names[0] == names[1] == names[4] != names[2] == names[3]
    branches = await tree.list_branches(driver.partition, "s")
    assert [branch.branch_id for branch in branches[1:]] == [names[0], names[2]]
    assert {branch.intent for branch in branches[1:]} == {BranchIntent.LOST}
    await driver.check(quiescent=True)


async def test_a_loss_that_begins_before_what_is_known_is_told_and_not_kept(
    driver: Driver,
) -> None:
    lease = await driver.held()
    snapshot = await take_snapshot(driver.redis)
    await driver.begin(lease)
    await driver.append(lease, [said(lease)])
    trail = Trail("main", (await driver.checkout(lease)).head, [])
    await write(driver, lease, trail, [said(lease, 2)])
    await fail_over(driver.redis, snapshot)
    loss = await loss_of(driver, trail)
    assert not loss.rooted
    async with driver.unchanged():
        error = await keep_aside(driver.partition, lease, "a", trail, loss)
    assert error is not None
    assert error.lost_branch is None
    assert "more was lost than this worker knows" in str(error)


async def test_records_of_a_session_that_was_deleted_are_not_lost(driver: Driver) -> None:
    lease = await driver.held()
    trail = await trail_of(driver, lease)
    await write(driver, lease, trail, [started(lease)])
    await driver.redis.flushall()
    await driver.partition.call("HSET", driver.keys.deleted(), "s", 2)
    loss = await loss_of(driver, trail)
    async with driver.unchanged():
        assert await keep_aside(driver.partition, lease, "a", trail, loss) is None


async def test_records_whose_content_is_lost_too_are_kept_beside_the_branch(
    driver: Driver,
) -> None:
    lease = await driver.held()
    trail = await trail_of(driver, lease)
    message = said(lease, calls=["a"])
    await write(driver, lease, trail, [started(lease), message, intent_of(message, 0)])
    snapshot = await take_snapshot(driver.redis)
    ref = await put_blob(driver.partition, lease, b"much", "text/plain", retry_s=RETRY_S)
    await write(driver, lease, trail, [with_content(outcome_of(message, 0), ref)])
    await fail_over(driver.redis, snapshot)
    loss = await loss_of(driver, trail)
    assert await lost_suffix(driver.partition, lease, loss) is None
    error = await keep_aside(driver.partition, lease, "a", trail, loss)
    assert error is not None
    assert error.lost_branch is not None
    kept = await tree.check_out(driver.partition, "s", error.lost_branch)
    assert isinstance(kept.messages[-1], ToolMessage)
    assert kept.open_run is None


def with_content(body: ToolCompleted, ref: BlobRef) -> ToolCompleted:
    return ToolCompleted(
        run_id=body.run_id,
        attempt=body.attempt,
        turn=body.turn,
        index=body.index,
        outcome=body.outcome,
        message=body.message,
        full=ref,
    )


async def test_no_more_is_remembered_than_two_checkpoints_reach(driver: Driver) -> None:
    lease = await driver.held()
    snapshot = await take_snapshot(driver.redis)
    trail = await trail_of(driver, lease)
    await write(driver, lease, trail, [started(lease)])
    for turn in range(1, 7):
        await write(driver, lease, trail, [said(lease, turn)])
        if turn % 2 == 0:
            await write(driver, lease, trail, [Checkpoint(messages=())])
    await fail_over(driver.redis, snapshot)
    loss = await loss_of(driver, trail)
    between = ["checkpoint", "message_appended", "message_appended", "checkpoint"]
    assert kinds(loss) == between
    assert id_of(loss.entries[-1]) == trail.head
    assert not loss.rooted
