"""hand back: a worker that leaves gives its run to the next one, at no cost for the run."""

from tests.journal.builders import said
from tests.journal.driving import Driver

from runlane.journal.wire.records import AttemptCause


async def test_a_run_handed_back_is_due_since_it_was_submitted(driver: Driver) -> None:
    lease = await driver.held()
    assert await driver.hand_back(lease)
    score = await driver.partition.call("ZSCORE", driver.keys.queue("a"), lease.run_id)
    assert score.decode() == (await driver.run(lease.run_id))["submitted_ms"]
    assert await driver.state(lease.run_id) == "queued"
    await driver.check()


async def test_no_crash_is_counted_however_often(driver: Driver) -> None:
    lease = await driver.held()
    for attempt in range(2, 20):
        assert await driver.hand_back(lease)
        lease = await driver.lease(crashes_max=1, crashes_total_max=1)
        assert (lease.attempt, lease.cause) == (attempt, AttemptCause.HAND_BACK)
    run = await driver.run(lease.run_id)
    assert "crashes" not in run
    assert "crashes_row" not in run


async def test_a_running_run_keeps_its_records_and_its_place(driver: Driver) -> None:
    lease = await driver.held()
    waiting = (await driver.submit()).run_id
    await driver.begin(lease)
    head = await driver.append(lease, [said(lease)])
    assert await driver.hand_back(lease)
    assert await driver.waiting() == ([], [waiting])
    assert (await driver.checkout(await driver.lease("w2"))).head == head


async def test_giving_back_what_is_not_held_changes_nothing(driver: Driver) -> None:
    lease = await driver.held()
    await driver.expire(lease)
    await driver.lease("w2")
    async with driver.unchanged():
        assert not await driver.hand_back(lease)


async def test_the_same_request_again_changes_nothing(driver: Driver) -> None:
    lease = await driver.held()
    await driver.hand_back(lease)
    sent = driver.last
    async with driver.unchanged():
        assert (await driver.partition.resend(sent))[0] == b"FENCED"
    await driver.lease("w2")
    async with driver.unchanged():
        assert (await driver.partition.resend(sent))[0] == b"FENCED"


async def test_one_worker_is_woken(driver: Driver) -> None:
    lease = await driver.held()
    await driver.partition.call("DEL", driver.keys.wake("a"))
    await driver.hand_back(lease)
    assert await driver.partition.call("LLEN", driver.keys.wake("a")) == 1
