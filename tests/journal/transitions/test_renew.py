"""renew: all runs of a worker live on, and it learns which ones it lost or must stop."""

from redis import Redis
from tests.journal.driving import LEASE_MS, Driver

from runlane.journal.ids import new_run_id


async def test_held_leases_are_extended(driver: Driver) -> None:
    first = await driver.held()
    second = await driver.held(session="t")
    renewal = await driver.renew(first, second, lease_ms=10 * LEASE_MS)
    assert renewal.lost == ()
    assert renewal.aborted == {}
    for lease in (first, second):
        assert await driver.due_ms(lease) > 9 * LEASE_MS
        assert await driver.partition.call("PTTL", f"arq:in-progress:{lease.run_id}") > 9 * LEASE_MS
    assert float(await driver.partition.call("ZSCORE", driver.keys.workers(), "w1")) > 0
    await driver.check()


async def test_an_expired_lease_that_nobody_took_is_alive_again(driver: Driver) -> None:
    lease = await driver.held()
    await driver.expire(lease)
    assert (await driver.renew(lease)).lost == ()
    assert not (await driver.claim("w2")).runs


async def test_lost_runs_are_named_and_left_alone(driver: Driver) -> None:
    taken, given_back = await driver.held(), await driver.held(session="t")
    ended, kept = await driver.held(session="u"), await driver.held(session="v")
    await driver.expire(taken)
    new = await driver.lease("w2")
    await driver.hand_back(given_back)
    await driver.finish(ended)
    renewal = await driver.renew(taken, given_back, ended, kept, lease_ms=10 * LEASE_MS)
    assert set(renewal.lost) == {lease.run_id for lease in (taken, given_back, ended)}
    assert await driver.due_ms(new) <= LEASE_MS
    assert await driver.due_ms(given_back) <= 0
    assert await driver.due_ms(kept) > LEASE_MS
    await driver.check()


async def test_a_run_that_never_was_is_lost(driver: Driver) -> None:
    lease = await driver.held()
    await driver.finish(lease)
    stranger = type(lease)(
        run_id=new_run_id(),
        session_id="nowhere",
        branch_id="main",
        queue="a",
        fence="1:x",
        attempt=1,
    )
    assert (await driver.renew(stranger)).lost == (stranger.run_id,)
    await driver.check(quiescent=True)


async def test_aborted_runs_are_told_with_the_first_reason(driver: Driver) -> None:
    lease, other = await driver.held(), await driver.held(session="t")
    await driver.abort(lease.run_id, "enough")
    await driver.abort(lease.run_id, "really")
    assert (await driver.renew(lease, other)).aborted == {lease.run_id: "enough"}


async def test_it_heals_when_the_server_forgot_the_script(driver: Driver) -> None:
    lease = await driver.held()
    with Redis.from_url(driver.partition.url) as client:
        client.script_flush()
    assert (await driver.renew(lease)).lost == ()
