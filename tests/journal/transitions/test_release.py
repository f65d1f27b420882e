"""release: a hold is given up, and the lane goes on."""

import pytest
from tests.holds.places import held, place_of, waiting
from tests.journal.driving import RETRY_S, Driver

from runlane.journal.errors import ContinueRejectedError
from runlane.journal.ids import new_run_id
from runlane.journal.transitions import release
from runlane.journal.transitions.hold import Place
from runlane.journal.wire.results import StopReason
from runlane.journal.wire.tree import LastRun


async def released(driver: Driver, place: Place, last_run: LastRun | None = None) -> bool:
    return await release(
        driver.partition,
        place.run_id,
        wrote=last_run is not None,
        last_run=last_run,
        retry_s=RETRY_S,
    )


async def test_the_next_run_goes_on_and_nothing_is_recorded(driver: Driver) -> None:
    await driver.completed()
    place = place_of()
    await held(driver, place)
    run_id = (await driver.submit()).run_id
    records = await driver.records()
    assert await released(driver, place)
    assert await driver.queued() == [run_id]
    assert await driver.records() == records
    assert 0 < await driver.partition.call("PTTL", driver.keys.run(place.run_id)) <= 3_600_000
    await driver.check()


async def test_who_waits_withdraws(driver: Driver) -> None:
    lease = await driver.held()
    place = place_of()
    await waiting(driver, place)
    assert await released(driver, place)
    assert await driver.waiting() == ([], [])
    await driver.begin(lease)
    await driver.finish(lease)
    await driver.check(quiescent=True)


async def test_the_same_request_again_is_answered_alike(driver: Driver) -> None:
    await driver.completed()
    place = place_of()
    await held(driver, place)
    assert await released(driver, place)
    async with driver.unchanged():
        assert await released(driver, place)


async def test_a_hold_that_was_taken_away_says_so(driver: Driver) -> None:
    await driver.completed()
    place = place_of()
    await held(driver, place)
    await driver.abort(place.run_id)
    async with driver.unchanged():
        assert not await released(driver, place)


async def test_what_nothing_is_known_of_was_lost(driver: Driver) -> None:
    async with driver.unchanged():
        assert not await release(driver.partition, new_run_id(), retry_s=RETRY_S)


async def test_a_run_that_the_holder_wrote_can_be_continued(driver: Driver) -> None:
    await driver.completed()
    place = place_of()
    await held(driver, place)
    last = LastRun(new_run_id(), StopReason.MAX_STEPS)
    assert await released(driver, place, last)
    lane = await driver.lane()
    assert (lane["last_run"], lane["last_stop"]) == (last.run_id, "max_steps")
    assert (await driver.submit("continue")).created


async def test_a_history_without_runs_has_none_to_continue(driver: Driver) -> None:
    await driver.completed()
    place = place_of()
    await held(driver, place)
    assert await release(driver.partition, place.run_id, wrote=True, retry_s=RETRY_S)
    assert "last_run" not in await driver.lane()
    with pytest.raises(ContinueRejectedError):
        await driver.submit("continue")
