"""What claim finds in a queue and cannot execute is put aside with a reason, and stops nothing."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import arq
import pytest
from arq.connections import RedisSettings
from tests.journal.driving import Driver


async def letter(driver: Driver, member: str) -> dict[str, str]:
    return await driver.fields(driver.keys.dead_letter(member))


async def test_a_job_of_stock_arq_is_put_aside_with_its_payload(driver: Driver) -> None:
    port = urlsplit(driver.partition.url).port or 0
    pool = await arq.create_pool(RedisSettings(port=port))
    job = await pool.enqueue_job("f", 1, _queue_name=driver.keys.queue("a"))
    await pool.aclose()
    assert job is not None
    ours = (await driver.submit()).run_id
    assert (await driver.lease()).run_id == ours
    found = await letter(driver, job.job_id)
    assert found["reason"].startswith("no run has this id")
    assert found["queue"] == "a"
    assert "f" in found["payload"]
    assert await driver.redis.zrange(driver.keys.dead(), 0, -1) == [job.job_id.encode()]
    assert not await driver.partition.call("EXISTS", f"arq:job:{job.job_id}")
    await driver.check()


Damage = Callable[[Driver, str], Awaitable[object]]


def field(name: str, value: str | None) -> Damage:
    def damage(driver: Driver, run_id: str) -> Awaitable[object]:
        key = driver.keys.run(run_id)
        if value is None:
            return driver.partition.call("HDEL", key, name)
        return driver.partition.call("HSET", key, name, value)

    return damage


async def another_type(driver: Driver, run_id: str) -> None:
    await driver.partition.call("DEL", driver.keys.run(run_id))
    await driver.partition.call("LPUSH", driver.keys.run(run_id), "x")


async def gone(driver: Driver, run_id: str) -> None:
    await driver.partition.call("DEL", driver.keys.run(run_id))


async def lane_of_another_type(driver: Driver, _: str) -> None:
    await driver.partition.call("SET", driver.keys.lane("s", "main"), "x")


async def lane_gone(driver: Driver, _: str) -> None:
    await driver.partition.call("DEL", driver.keys.lane("s", "main"))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (another_type, "no run has this id"),
        (gone, "no run has this id"),
        (field("session", None), "the run hash is damaged"),
        (field("branch", None), "the run hash is damaged"),
        (field("state", None), "the run hash is damaged"),
        (field("queue", None), "the run hash is damaged"),
        (field("attempt", "x"), "the run hash is damaged"),
        (lane_of_another_type, "its lane is damaged"),
        (lane_gone, "its lane is damaged"),
    ],
)
async def test_a_damaged_run_is_put_aside_and_the_queue_goes_on(
    driver: Driver, damage: Damage, reason: str
) -> None:
    damaged = (await driver.submit()).run_id
    await driver.redis.zadd(driver.keys.queue("a"), {damaged: 1})
    healthy = {(await driver.submit(session=f"t{n}")).run_id for n in range(3)}
    await damage(driver, damaged)
    claim = await driver.claim()
    assert {run.lease.run_id for run in claim.runs} == healthy
    assert claim.exhausted == ()
    assert (await letter(driver, damaged))["reason"].startswith(reason)
    assert damaged not in await driver.queued()


async def test_damaged_crash_counts_begin_at_one(driver: Driver) -> None:
    lease = await driver.held()
    for name in ("crashes", "crashes_row"):
        await driver.partition.call("HSET", driver.keys.run(lease.run_id), name, "x")
    await driver.expire(lease)
    assert (await driver.lease()).attempt == 2
    assert (await driver.run(lease.run_id))["crashes"] == "1"


async def test_a_lost_job_is_handed_out_as_such(driver: Driver) -> None:
    run_id = (await driver.submit()).run_id
    await driver.partition.call("HDEL", driver.keys.run(run_id), "job")
    (claimed,) = (await driver.claim()).runs
    assert (claimed.lease.run_id, claimed.job) == (run_id, b"")
    assert await driver.settle(run_id, dead_reason="its job is lost", fence=claimed.lease.fence)
    await driver.check(quiescent=True)
