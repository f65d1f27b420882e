"""Crashes: a run that kills its workers ends, one that gets further does not."""

from tests.journal.builders import said, started, taken_over
from tests.journal.driving import Driver

from runlane.journal.lease import Lease
from runlane.journal.wire.records import AttemptCause
from runlane.journal.wire.results import StopReason


async def crash_until_exhausted(driver: Driver, lease: Lease, *, progress: bool = False) -> int:
    """Return how many attempts the run had; every claim is its own worker."""
    begun = False
    for attempt in range(1, 100):
        await driver.checkout(lease)
        start = taken_over(lease) if begun else started(lease)
        entries = [start, said(lease, attempt)] if progress else [start]
        await driver.append(lease, entries, progress=progress)
        begun = True
        await driver.expire(lease)
        claim = await driver.claim(f"w{attempt}")
        if claim.exhausted:
            assert claim.exhausted == (lease.run_id,)
            assert claim.runs == ()
            return attempt
        lease = claim.runs[0].lease
    raise AssertionError("never exhausted")


async def test_the_third_crash_without_progress_is_the_last(driver: Driver) -> None:
    lease = await driver.held()
    assert await crash_until_exhausted(driver, lease) == 3
    assert await driver.state(lease.run_id) == "queued"
    assert "fence" not in await driver.lane()
    await driver.check()


async def test_the_tenth_crash_is_the_last_whatever_the_progress(driver: Driver) -> None:
    assert await crash_until_exhausted(driver, await driver.held(), progress=True) == 10


async def test_a_hand_back_in_between_forgives_nothing(driver: Driver) -> None:
    lease = await driver.held()
    for _ in range(2):
        await driver.expire(lease)
        lease = await driver.lease()
        assert lease.cause is AttemptCause.CRASH
        await driver.hand_back(lease)
        lease = await driver.lease()
        assert lease.cause is AttemptCause.HAND_BACK
    await driver.expire(lease)
    assert (await driver.claim()).exhausted == (lease.run_id,)


async def test_an_exhausted_run_is_settled_and_its_lane_goes_on(driver: Driver) -> None:
    lease = await driver.held()
    next_id = (await driver.submit()).run_id
    await crash_until_exhausted(driver, lease)
    assert await driver.settle(lease.run_id)
    run = await driver.run(lease.run_id)
    assert (run["state"], run["stop_reason"]) == ("failed", "worker_lost")
    assert await driver.queued() == [next_id]
    await driver.check()


async def test_an_exhausted_run_can_be_continued(driver: Driver) -> None:
    lease = await driver.held()
    await crash_until_exhausted(driver, lease)
    await driver.settle(lease.run_id)
    assert (await driver.submit("continue")).created
    continued = await driver.lease()
    await driver.checkout(continued)
    await driver.finish(continued, StopReason.MAX_STEPS)


async def test_an_exhausted_run_gets_no_further_attempt_if_nobody_settled_it(
    driver: Driver,
) -> None:
    lease = await driver.held()
    await crash_until_exhausted(driver, lease)
    attempts = (await driver.run(lease.run_id))["attempt"]
    assert (await driver.claim("w8")).exhausted == ()  # whoever was told has a lease to do it
    await driver.expire(lease)
    again = await driver.claim("w9")
    assert (again.runs, again.exhausted) == ((), (lease.run_id,))
    assert (await driver.run(lease.run_id))["attempt"] == attempts
    await driver.settle(lease.run_id)
    await driver.check(quiescent=True)


async def test_the_same_request_again_names_the_same_exhausted_runs(driver: Driver) -> None:
    lease = await driver.held()
    await crash_until_exhausted(driver, lease)
    sent = driver.last
    async with driver.unchanged():
        assert (await driver.partition.resend(sent))[1:] == [[], [lease.run_id.encode()]]
    await driver.settle(lease.run_id)
    async with driver.unchanged():
        assert (await driver.partition.resend(sent))[1:] == [[], []]
