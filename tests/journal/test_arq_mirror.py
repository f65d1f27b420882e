"""Stock arq tools, pointed at a queue of ours, say what is going on there."""

import msgspec
from arq.jobs import Job, JobResult, JobStatus
from tests.journal.builders import said
from tests.journal.driving import Driver

from runlane.journal.wire.results import StopReason


def arq_job(driver: Driver, run_id: str) -> Job:
    return Job(
        run_id,
        driver.redis,
        _queue_name=driver.keys.queue("a"),
        _deserializer=msgspec.msgpack.decode,
    )


async def test_it_follows_a_run_from_queue_to_result(driver: Driver) -> None:
    run_id = (await driver.submit()).run_id
    job = arq_job(driver, run_id)
    assert await job.status() is JobStatus.queued
    info = await job.info()
    assert info is not None
    assert (info.function, len(info.args)) == ("run", 0)
    assert info.kwargs == {"session_id": "s", "branch_id": "main", "agent": "a"}
    assert info.enqueue_time.timestamp() * 1000 == int((await driver.run(run_id))["submitted_ms"])

    lease = await driver.lease()
    assert await job.status() is JobStatus.in_progress
    await driver.begin(lease)
    await driver.append(lease, [said(lease)])
    assert await job.status() is JobStatus.in_progress
    await driver.hand_back(lease)
    assert await job.status() is JobStatus.queued

    lease = await driver.lease()
    await driver.checkout(lease)
    await driver.finish(lease)
    assert await job.status() is JobStatus.complete
    result = await job.result_info()
    assert isinstance(result, JobResult)
    assert (result.success, result.result) == (True, "completed/text_response")
    assert (result.job_id, result.queue_name) == (run_id, driver.keys.queue("a"))
    assert result.job_try == 2
    assert result.start_time <= result.finish_time


async def test_a_run_behind_another_is_not_in_the_queue(driver: Driver) -> None:
    await driver.submit()
    waiting = arq_job(driver, (await driver.submit()).run_id)
    assert await waiting.status() is JobStatus.not_found
    assert await waiting.info() is None


async def test_a_run_that_does_not_complete_has_no_success(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.finish(lease, StopReason.MAX_STEPS)
    result = await arq_job(driver, lease.run_id).result_info()
    assert result is not None
    assert (result.success, result.result) == (False, "failed/max_steps")


async def test_a_run_that_never_began_has_a_result(driver: Driver) -> None:
    run_id = (await driver.submit()).run_id
    await driver.abort(run_id)
    job = arq_job(driver, run_id)
    assert await job.status() is JobStatus.complete
    result = await job.result_info()
    assert result is not None
    assert (result.success, result.result) == (False, "cancelled/external_abort")


async def test_a_lost_job_entry_is_made_again_by_claim(driver: Driver) -> None:
    run_id = (await driver.submit()).run_id
    await driver.partition.call("DEL", f"arq:job:{run_id}")
    await driver.lease()
    assert await arq_job(driver, run_id).info() is not None


async def test_a_job_entry_has_no_expiry_and_a_result_has_one(driver: Driver) -> None:
    lease = await driver.held()
    assert await driver.partition.call("PTTL", f"arq:job:{lease.run_id}") == -1
    await driver.finish(lease)
    assert 0 < await driver.partition.call("PTTL", f"arq:result:{lease.run_id}") <= 3_600_000
