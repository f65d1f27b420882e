"""What stock arq tools see of a run."""

from typing import Any, cast

import msgspec
from arq.connections import RedisSettings, create_pool
from arq.jobs import Job, JobStatus
from tests.e2e.harness import Fleet
from tests.e2e.observing import check_rest
from tests.e2e.waiting import DEADLINE_S, until

from runlane.producer import Client, RunStatus


async def test_the_status_of_a_run_is_that_of_an_arq_job(fleet: Fleet, client: Client) -> None:
    await fleet.start(max_runs=1)
    queue = fleet.keys.queue("clerk")
    pool = await create_pool(
        RedisSettings.from_dsn(fleet.url),
        job_deserializer=msgspec.msgpack.decode,
        default_queue_name=queue,
    )
    first = await client.session("s-1", agent="clerk").run('[[tool hold {"gate": "go"}]]')
    await until(lambda: bool(fleet.ledger.all("hold")), "the only slot is in use")
    second = await client.session("s-2", agent="clerk").run("hi")

    def job(run_id: str) -> Job:
        return Job(run_id, pool, _queue_name=queue, _deserializer=msgspec.msgpack.decode)

    assert await job(first.run_id).status() is JobStatus.in_progress
    assert await job(second.run_id).status() is JobStatus.queued
    queued = {definition.job_id: definition for definition in await pool.queued_jobs()}
    assert queued.keys() == {first.run_id, second.run_id}
    assert queued[second.run_id].kwargs["session_id"] == "s-2"

    fleet.open("go")
    for handle in (first, second):
        assert (await handle.result(DEADLINE_S)).status is RunStatus.COMPLETED
        assert await job(handle.run_id).status() is JobStatus.complete
        info = await job(handle.run_id).result_info()
        assert info is not None
        assert (info.success, info.result, info.queue_name) == (
            True,
            "completed/text_response",
            queue,
        )
    assert await pool.queued_jobs() == []
    await cast("Any", pool).aclose(close_connection_pool=True)
    await check_rest(fleet)
