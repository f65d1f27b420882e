"""Runs and payloads that harm whoever takes them."""

import signal
from typing import Any, cast

import pytest
from arq.connections import RedisSettings, create_pool
from redis.asyncio import Redis
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_calls, check_rest
from tests.e2e.waiting import DEADLINE_S, until

from runlane.producer import Client, RunHandle, RunStatus, StopReason


async def test_a_run_that_kills_its_workers_ends_and_everything_else_goes_on(
    fleet: Fleet, client: Client
) -> None:
    healthy, victim = fleet.launch("clerk"), fleet.launch("victim")
    await fleet.registered(healthy, victim)
    lane = client.session("poisoned", agent="victim")
    poison, after = await lane.run("[[tool poison]]"), await lane.run("[[tool pay]]")
    for life in range(3):
        other = await client.session(f"other-{life}", agent="clerk").run("[[tool look]]")
        assert (await other.result(DEADLINE_S)).status is RunStatus.COMPLETED
        assert await victim.ended() == -signal.SIGKILL
        victim = fleet.launch("victim")
    result = await poison.result(DEADLINE_S)
    assert (result.status, result.stop_reason) == (RunStatus.FAILED, StopReason.WORKER_LOST)
    assert (await after.result(DEADLINE_S)).status is RunStatus.COMPLETED
    info = await poison.status()
    assert (info.crashes, info.attempt) == (3, 3)
    executions = fleet.ledger.all("poison")
    assert [execution.attempt for execution in executions] == [1, 2, 3]
    assert len({execution.key for execution in executions}) == 1
    story = await Story.read(client, "poisoned")
    assert story.end(poison.run_id).result == result
    check_calls(fleet, [story])
    assert healthy.alive
    assert victim.alive
    await check_rest(fleet)


@pytest.mark.parametrize("lease_ms", [1000])
async def test_a_run_that_kills_its_workers_takes_no_neighbour_along(
    fleet: Fleet, client: Client
) -> None:
    worker = await fleet.start()
    sessions = [client.session(f"neighbour-{n}", agent="clerk") for n in range(8)]
    neighbours = [await session.run("[[delay 3]]") for session in sessions]

    async def are_at_work() -> bool:
        return all([(await run.status()).state == "running" for run in neighbours])

    await until(are_at_work, "all neighbours wait for the model")
    poison = await client.session("poisoned", agent="clerk").run("[[tool poison]]")
    for _ in range(3):
        assert await worker.ended() == -signal.SIGKILL
        worker = fleet.launch()
    result = await poison.result(DEADLINE_S)
    assert (result.status, result.stop_reason) == (RunStatus.FAILED, StopReason.WORKER_LOST)
    for run in neighbours:
        assert (await run.result(DEADLINE_S)).status is RunStatus.COMPLETED
    assert worker.alive
    await check_rest(fleet)


async def test_what_cannot_be_decoded_is_put_aside_and_stops_nothing(
    fleet: Fleet, client: Client, redis: Redis
) -> None:
    await fleet.start()
    lane = client.session("s", agent="clerk")
    first = await lane.run('[[tool hold {"gate": "go"}]]')
    damaged, last = await lane.run("hi"), await lane.run("hi")
    await until(lambda: bool(fleet.ledger.all("hold")), "the lane is busy")
    await cast("Any", redis).hset(fleet.keys.run(damaged.run_id), "job", b"\xc1damaged")
    foreign = await _enqueue_by_stock_arq(fleet)

    async def is_put_aside() -> bool:
        return bool(await _dead_letter(redis, fleet, foreign))

    await until(is_put_aside, "the foreign job is a dead letter")
    letter = await _dead_letter(redis, fleet, foreign)
    assert b"not enqueued by runlane" in letter[b"reason"]
    assert letter[b"payload"], "what arq had stored is kept"
    fleet.open("go")
    for handle in (first, last):
        assert (await handle.result(DEADLINE_S)).status is RunStatus.COMPLETED
    await _check_damaged(client, damaged)
    letter = await _dead_letter(redis, fleet, damaged.run_id)
    assert letter[b"payload"] == b"\xc1damaged"
    assert letter[b"reason"]
    await check_rest(fleet)


async def _enqueue_by_stock_arq(fleet: Fleet) -> str:
    pool = await create_pool(RedisSettings.from_dsn(fleet.url))
    job = await pool.enqueue_job("f", _queue_name=fleet.keys.queue("clerk"))
    assert job is not None
    await cast("Any", pool).aclose(close_connection_pool=True)
    return job.job_id


async def _dead_letter(redis: Redis, fleet: Fleet, member: str) -> dict[bytes, bytes]:
    if await cast("Any", redis).zscore(fleet.keys.dead(), member) is None:
        return {}
    letter: dict[bytes, bytes] = await cast("Any", redis).hgetall(fleet.keys.dead_letter(member))
    return letter


async def _check_damaged(client: Client, damaged: RunHandle) -> None:
    result = await damaged.result(DEADLINE_S)
    assert (result.status, result.stop_reason) == (RunStatus.FAILED, StopReason.RUNTIME_ERROR)
    assert result.error
    story = await Story.read(client, damaged.session_id)
    assert story.end(damaged.run_id).result == result
