"""Wishes to hold a lane, with everything filled in that a test does not care about."""

from tests.journal.driving import LEASE_MS, Driver

from runlane.journal.ids import new_run_id
from runlane.journal.transitions import hold
from runlane.journal.transitions.hold import Ahead, Held, Place


def place_of(
    session: str = "s", branch: str = "main", *, holder: str = "me", lease_ms: int = LEASE_MS
) -> Place:
    return Place(
        run_id=new_run_id(),
        session_id=session,
        branch_id=branch,
        holder=holder,
        nonce=f"nonce-of-{holder}",
        lease_ms=lease_ms,
    )


async def held(driver: Driver, place: Place, *, fence: str = "") -> Held:
    """Hold a lane that is free."""
    outcome = await hold(driver.partition, place, fence=fence)
    assert isinstance(outcome, Held)
    return outcome


async def waiting(driver: Driver, place: Place) -> Ahead:
    """Wait for a lane that is not free."""
    outcome = await hold(driver.partition, place)
    assert isinstance(outcome, Ahead)
    return outcome


async def silence(driver: Driver, place: Place) -> None:
    """Let the lease of a holder end now."""
    await driver.partition.call("ZADD", driver.keys.queue("@hold"), 1, place.run_id)
