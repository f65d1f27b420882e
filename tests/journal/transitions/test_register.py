"""register: a worker and what it serves are known for as long as it lives."""

import msgspec
from tests.journal.driving import Driver

from runlane.journal.transitions import register
from runlane.journal.transitions.register import WorkerInfo


async def test_a_worker_and_its_agents_are_known(driver: Driver) -> None:
    info = WorkerInfo(host="h", pid=7, agents={"c": "3", "b": "9"}, max_runs=5)
    await register(driver.partition, worker_id="w9", lease_ms=1000, info=info)
    assert await driver.fields(driver.keys.agents()) == {"a": "1", "b": "9", "c": "3"}
    stored = await driver.partition.call("HGET", driver.keys.worker("w9"), "info")
    assert msgspec.json.decode(stored, type=WorkerInfo) == info
    assert 0 < await driver.partition.call("PTTL", driver.keys.worker("w9")) <= 10_000


async def test_a_worker_that_leaves_is_forgotten_but_not_its_agents(driver: Driver) -> None:
    await driver.register("w2")
    await driver.register("w2", lease_ms=0)
    workers = await driver.redis.zrange(driver.keys.workers(), 0, -1)
    assert workers == [b"w1"]
    assert not await driver.partition.call("EXISTS", driver.keys.worker("w2"))
    assert (await driver.submit(agent="b")).created


async def test_a_worker_silent_for_ten_leases_is_forgotten(driver: Driver) -> None:
    await driver.redis.zadd(driver.keys.workers(), {"gone": 1})
    await driver.register("w1")
    assert await driver.redis.zrange(driver.keys.workers(), 0, -1) == [b"w1"]
