"""claim: due runs go to one worker at a time, each with a fence of its own."""

import asyncio

import pytest
from tests.journal.builders import started
from tests.journal.driving import LEASE_MS, Driver

from runlane.journal.lease import Lease
from runlane.journal.wire.records import AttemptCause
from runlane.journal.wire.results import StopReason


async def test_a_claimed_run_is_leased_for_a_while(driver: Driver) -> None:
    lease = await driver.held()
    assert (lease.attempt, lease.cause, lease.queue) == (1, None, "a")
    run = await driver.run(lease.run_id)
    assert (run["state"], run["worker"]) == ("leased", "w1")
    assert (await driver.lane())["fence"] == lease.fence
    assert 0 < await driver.due_ms(lease) <= LEASE_MS
    await driver.check()


async def test_a_leased_run_is_nobody_elses(driver: Driver) -> None:
    await driver.held()
    claim = await driver.claim("w2")
    assert claim.runs == ()
    assert claim.wait_s is not None
    assert 0 < claim.wait_s <= LEASE_MS / 1000


async def test_an_empty_queue_says_that_there_is_nothing_to_wait_for(driver: Driver) -> None:
    assert (await driver.claim()).wait_s is None
    await driver.completed()
    assert (await driver.claim()).wait_s is None


async def test_an_expired_lease_goes_to_another_worker_with_a_new_fence(driver: Driver) -> None:
    old = await driver.held()
    await driver.expire(old)
    new = await driver.lease("w2")
    assert (new.run_id, new.attempt, new.cause) == (old.run_id, 2, AttemptCause.CRASH)
    assert new.fence != old.fence
    assert (await driver.run(old.run_id))["worker"] == "w2"
    await driver.check()


async def test_a_lease_ends_by_itself(driver: Driver) -> None:
    await driver.submit()
    old = await driver.lease(lease_ms=100)
    claim = await driver.claim("w2")
    async with asyncio.timeout(30):
        while True:
            if claim.runs:
                break
            await asyncio.sleep(claim.wait_s or 0)
            claim = await driver.claim("w2")
    assert claim.runs[0].lease.run_id == old.run_id
    assert claim.runs[0].lease.fence != old.fence


async def test_runs_come_in_the_order_in_which_they_became_due(driver: Driver) -> None:
    runs = [(await driver.submit(session=f"s{n}")).run_id for n in range(4)]
    for score, run_id in enumerate(runs, 1):
        await driver.redis.zadd(driver.keys.queue("a"), {run_id: score})
    claimed = [(await driver.lease(slots=1)).run_id for _ in runs]
    assert claimed == runs


async def test_the_queue_named_first_is_served_first(driver: Driver) -> None:
    of_a = await driver.submit(agent="a")
    of_b = await driver.submit(session="t", agent="b")
    first = await driver.lease(slots=1, queues=["b", "a"])
    second = await driver.lease(slots=1, queues=["b", "a"])
    assert [first.run_id, second.run_id] == [of_b.run_id, of_a.run_id]


async def test_a_worker_gets_only_what_it_serves(driver: Driver) -> None:
    await driver.submit(agent="b")
    claim = await driver.claim(queues=["a"])
    assert (claim.runs, claim.wait_s) == ((), None)


async def test_a_worker_gets_no_more_than_it_has_slots(driver: Driver) -> None:
    for n in range(5):
        await driver.submit(session=f"s{n}")
    assert len((await driver.claim(slots=2)).runs) == 2


async def test_two_workers_share_the_backlog(driver: Driver) -> None:
    await driver.register("w2")
    for n in range(10):
        await driver.submit(session=f"s{n}")
    taken = [len((await driver.claim(worker)).runs) for worker in ("w1", "w2", "w1", "w2", "w1")]
    assert taken[:2] == [5, 3]
    assert sum(taken) == 10


async def test_a_worker_that_is_gone_gets_no_share(driver: Driver) -> None:
    await driver.register("w2", lease_ms=0)
    for n in range(10):
        await driver.submit(session=f"s{n}")
    assert len((await driver.claim()).runs) == 10


async def test_what_is_left_wakes_another_worker(driver: Driver) -> None:
    for n in range(3):
        await driver.submit(session=f"s{n}")
    wake = driver.keys.wake("a")
    await driver.partition.call("DEL", wake)
    await driver.claim(slots=1)
    assert await driver.partition.call("LLEN", wake) == 1
    await driver.claim(slots=2)
    assert await driver.partition.call("LLEN", wake) == 1


async def test_wake_tokens_are_capped(driver: Driver) -> None:
    for n in range(70):
        await driver.submit(session=f"s{n}")
    assert await driver.partition.call("LLEN", driver.keys.wake("a")) == 64


async def test_the_same_request_again_names_the_same_runs(driver: Driver) -> None:
    for n in range(4):
        await driver.submit(session=f"s{n}")
    claim = await driver.claim()
    sent = driver.last

    async def again() -> list[bytes]:
        async with driver.unchanged():
            _, runs, exhausted = await driver.partition.resend(sent)
        assert exhausted == []
        for run in runs:
            assert run in sent.reply[1]
        return [run[0] for run in runs]

    ids = [run.lease.run_id.encode() for run in claim.runs]
    assert await again() == ids
    first, second, third, fourth = [run.lease for run in claim.runs]
    await driver.submit(session="s9")
    await driver.checkout(first)
    await driver.append(first, [started(first)])
    await driver.abort(first.run_id)
    assert await again() == ids
    await driver.expire(second)
    await driver.claim("w2")
    await driver.hand_back(third)
    await driver.finish(fourth)
    assert await again() == ids[:1]


async def suspects(driver: Driver, count: int = 3) -> list[Lease]:
    """Return leases that have ended: one more crash each, and one is left."""
    leases = [await driver.held(session=f"s{n}") for n in range(count)]
    for lease in leases:
        await driver.expire(lease)
    leases = [run.lease for run in (await driver.claim()).runs]
    for lease in leases:
        await driver.expire(lease)
    return leases


async def test_a_worker_holds_one_run_on_its_last_chance(driver: Driver) -> None:
    leases = await suspects(driver)
    fresh = await driver.submit(session="fresh")
    claimed = [run.lease for run in (await driver.claim("w2")).runs]
    assert len(claimed) == 2
    (one,) = [lease for lease in claimed if lease.run_id != fresh.run_id]
    others = [lease for lease in leases if lease.run_id != one.run_id]
    for lease in others:
        await driver.expire(lease)
    assert (await driver.claim("w2")).runs == ()
    for lease in others:
        await driver.expire(lease)
    two = await driver.lease("w3", slots=1)
    assert two.run_id in {lease.run_id for lease in others}
    await driver.check()


@pytest.mark.parametrize("leaves", ["ends", "gets further", "is handed back"])
async def test_a_worker_gets_the_next_when_its_run_leaves_its_last_chance(
    driver: Driver, leaves: str
) -> None:
    leases = await suspects(driver, 2)
    one = await driver.lease("w2")
    (other,) = [lease for lease in leases if lease.run_id != one.run_id]
    await driver.checkout(one)
    if leaves == "ends":
        await driver.finish(one)
    elif leaves == "gets further":
        await driver.append(one, [started(one)])
    else:
        await driver.hand_back(one)
        await driver.lease("w3", slots=1)
    await driver.expire(other)
    assert (await driver.lease("w2")).run_id == other.run_id


async def test_the_last_chance_may_be_the_last_in_all(driver: Driver) -> None:
    await suspects(driver)
    assert len((await driver.claim("w2", crashes_max=100, crashes_total_max=3)).runs) == 1


async def test_runs_that_never_crashed_are_on_no_last_chance(driver: Driver) -> None:
    for n in range(5):
        await driver.submit(session=f"s{n}")
    assert len((await driver.claim(crashes_max=1, crashes_total_max=1)).runs) == 5


async def test_an_aborted_run_is_not_put_off(driver: Driver) -> None:
    leases = await suspects(driver)
    for lease in leases:
        await driver.abort(lease.run_id)
    assert len((await driver.claim("w2")).runs) == 3


async def test_a_deferred_run_is_no_crash(driver: Driver) -> None:
    leases = await suspects(driver)
    before = {lease.run_id: await driver.run(lease.run_id) for lease in leases}
    claim = await driver.claim("w2")
    (one,) = claim.runs
    deferred = [lease for lease in leases if lease.run_id != one.lease.run_id]
    for lease in deferred:
        assert await driver.run(lease.run_id) == before[lease.run_id]
        assert (await driver.lane(lease.session_id))["fence"] == lease.fence
        assert await driver.due_ms(lease) <= 250
    assert claim.wait_s == 0.5  # others come first
    assert (await driver.claim("w3")).wait_s is not None
    await driver.check()


async def test_the_same_request_again_names_the_same_run_on_its_last_chance(
    driver: Driver,
) -> None:
    leases = await suspects(driver)
    await driver.claim("w2")
    sent = driver.last
    for lease in leases:
        if lease.run_id != sent.reply[1][0][0].decode():
            await driver.expire(lease)
    async with driver.unchanged():
        assert (await driver.partition.resend(sent))[1:] == sent.reply[1:]


async def test_no_fence_is_ever_issued_twice(driver: Driver) -> None:
    fences: set[str] = set()
    for _ in range(3):
        lease = await driver.held()
        for _ in range(3):
            fences.add(lease.fence)
            await driver.hand_back(lease)
            lease = await driver.lease()
        fences.add(lease.fence)
        await driver.finish(lease, StopReason.MAX_STEPS)
    assert len(fences) == 12


@pytest.mark.parametrize("stranger", ["ended", "waiting", "of another queue"])
async def test_a_run_that_is_not_due_here_is_dropped_from_the_queue(
    driver: Driver, stranger: str
) -> None:
    lease = await driver.held()
    waiting = (await driver.submit()).run_id
    run_id, queue = waiting, "a"
    if stranger == "ended":
        run_id = (await driver.completed(session="t")).run_id
    elif stranger == "of another queue":
        run_id, queue = lease.run_id, "b"
    await driver.redis.zadd(driver.keys.queue(queue), {run_id: 1})
    assert not (await driver.claim(queues=["a", "b"])).runs
    await driver.check()
