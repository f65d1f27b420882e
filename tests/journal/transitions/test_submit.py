"""submit: accepted once, or refused without a trace."""

import pytest
from tests.journal.builders import job_of
from tests.journal.driving import PAYLOAD_BYTES_MAX, Driver

from runlane.journal.errors import (
    AgentMismatchError,
    ContinueRejectedError,
    FollowUpRejectedError,
    IdempotencyConflictError,
    InvalidInputError,
    PayloadTooLargeError,
    SessionClosedError,
    UnknownAgentError,
    UnknownBranchError,
)
from runlane.journal.wire.codec import decode_job
from runlane.journal.wire.control import ContinueRejectedReason, ControlStatus
from runlane.journal.wire.jobs import FollowUpFailurePolicy
from runlane.journal.wire.records import RunQueued
from runlane.journal.wire.results import CONTINUABLE, StopReason


async def test_an_accepted_run_is_stored_journaled_and_queued(driver: Driver) -> None:
    job = job_of(task="what is up?")
    submitted = await driver.submit_job(job)
    run = await driver.run(job.run_id)
    assert (submitted.run_id, submitted.created) == (job.run_id, True)
    assert (run["state"], run["queued_id"]) == ("queued", submitted.queued_id)
    (record,) = await driver.records()
    assert record.record_id == submitted.queued_id
    assert record.body == RunQueued(run_id=job.run_id, branch_id="main", intent="run", agent="a")
    (claimed,) = (await driver.claim()).runs
    assert decode_job(claimed.job) == job


async def test_only_the_head_of_a_lane_is_queued(driver: Driver) -> None:
    first, second, third = [(await driver.submit()).run_id for _ in range(3)]
    assert await driver.queued() == [first]
    assert await driver.waiting() == ([], [second, third])
    await driver.check()


async def test_lanes_do_not_wait_for_each_other(driver: Driver) -> None:
    runs = {(await driver.submit(session=session)).run_id for session in ("s", "t")}
    await driver.branch("side")
    runs.add((await driver.submit(branch="side")).run_id)
    assert {run.lease.run_id for run in (await driver.claim()).runs} == runs


async def test_a_run_of_a_version_waits_in_a_queue_of_its_own(driver: Driver) -> None:
    await driver.submit(version="7")
    assert not (await driver.claim(queues=["a"])).runs
    assert (await driver.lease(queues=["a", "a@7"])).queue == "a@7"


async def test_the_same_request_again_gets_the_same_answer_in_every_state(driver: Driver) -> None:
    job = job_of()
    first = await driver.submit_job(job)
    accepted = driver.last

    async def again() -> None:
        async with driver.unchanged():
            assert await driver.partition.resend(accepted) == [b"EXISTS", *accepted.reply[1:]]
            repeated = await driver.submit_job(job)
        assert (repeated.run_id, repeated.queued_id) == (first.run_id, first.queued_id)
        assert not repeated.created

    await again()
    await driver.submit()
    await again()
    lease = await driver.lease()
    await driver.begin(lease)
    await again()
    await driver.finish(lease)
    await again()


async def test_a_key_names_the_first_run_with_the_same_body(driver: Driver) -> None:
    first = await driver.submit(task="once", idempotency_key="k")
    async with driver.unchanged():
        again = await driver.submit(task="once", idempotency_key="k")
    assert (again.run_id, again.queued_id) == (first.run_id, first.queued_id)
    assert not again.created


@pytest.mark.parametrize(
    "other",
    [{"task": "twice"}, {"branch": "side"}, {"version": "2"}, {"intent": "follow_up"}],
    ids=str,
)
async def test_a_key_with_another_body_is_a_conflict(driver: Driver, other: dict[str, str]) -> None:
    first = await driver.submit(task="once", idempotency_key="k")
    async with driver.unchanged():
        with pytest.raises(IdempotencyConflictError) as refused:
            await driver.submit(**({"intent": "run", "task": "once"} | other), idempotency_key="k")
    assert refused.value.run_id == first.run_id


async def test_a_key_with_another_failure_policy_is_a_conflict(driver: Driver) -> None:
    await driver.held()
    first = await driver.submit("follow_up", idempotency_key="k")
    policy = FollowUpFailurePolicy.CONTINUE
    async with driver.unchanged():
        with pytest.raises(IdempotencyConflictError) as refused:
            await driver.submit("follow_up", policy=policy, idempotency_key="k")
    assert refused.value.run_id == first.run_id


async def test_a_key_belongs_to_its_session(driver: Driver) -> None:
    first = await driver.submit(idempotency_key="k")
    other = await driver.submit(session="t", idempotency_key="k")
    assert other.created
    assert other.run_id != first.run_id


async def test_a_key_is_forgotten_when_its_time_is_over(driver: Driver) -> None:
    first = await driver.submit(idempotency_key="k")
    (name,) = await driver.partition.call("KEYS", driver.keys.idempotency("s", "*"))
    assert 0 < await driver.partition.call("PTTL", name) <= 604_800_000
    await driver.partition.call("DEL", name)  # as its expiry does
    assert (await driver.submit(idempotency_key="k")).run_id != first.run_id


async def test_an_unknown_agent_is_refused_with_the_names_of_the_known(driver: Driver) -> None:
    async with driver.unchanged():
        with pytest.raises(UnknownAgentError) as refused:
            await driver.submit(agent="nobody")
    assert refused.value.known == ("a", "b")


async def test_a_session_stays_with_its_agent(driver: Driver) -> None:
    await driver.completed()
    async with driver.unchanged():
        with pytest.raises(AgentMismatchError) as refused:
            await driver.submit(agent="b")
    assert refused.value.bound_agent == "a"


async def test_a_branch_must_exist_before_anything_is_asked_of_it(driver: Driver) -> None:
    await driver.submit()
    await driver.branch("left")
    async with driver.unchanged():
        with pytest.raises(UnknownBranchError, match=r"it has: left, main\)") as refused:
            await driver.submit(branch="side")
    assert (refused.value.session_id, refused.value.branch_id) == ("s", "side")
    async with driver.unchanged():
        with pytest.raises(UnknownBranchError):
            await driver.submit(branch="side", session="nowhere")


@pytest.mark.parametrize("state", ["deleting", "importing:abc"])
async def test_a_closed_session_takes_no_work(driver: Driver, state: str) -> None:
    await driver.completed()
    await driver.partition.call("HSET", driver.keys.session("s"), "state", state)
    async with driver.unchanged():
        with pytest.raises(SessionClosedError) as refused:
            await driver.submit()
    assert (refused.value.session_id, refused.value.state) == ("s", state)
    await driver.partition.call("HSET", driver.keys.session("s"), "state", "")
    assert (await driver.submit()).created


async def test_a_session_of_a_deleted_ones_name_goes_on_counting(driver: Driver) -> None:
    await driver.partition.call("HSET", driver.keys.deleted(), "s", 41)
    await driver.completed()
    assert [record.revision for record in await driver.records()] == [42, 43, 44]
    await driver.check(quiescent=True)


async def test_a_follow_up_needs_an_active_run(driver: Driver) -> None:
    await driver.completed()
    async with driver.unchanged():
        with pytest.raises(FollowUpRejectedError) as refused:
            await driver.submit("follow_up")
    assert refused.value.receipt.status is ControlStatus.AGENT_IDLE


async def test_a_follow_up_precedes_the_inbox(driver: Driver) -> None:
    lease = await driver.held()
    plain = (await driver.submit()).run_id
    follow_ups = [(await driver.submit("follow_up")).run_id for _ in range(2)]
    assert await driver.waiting() == (follow_ups, [plain])
    await driver.begin(lease)
    await driver.finish(lease)
    order: list[str] = []
    for _ in range(3):
        lease = await driver.lease()
        order.append(lease.run_id)
        await driver.begin(lease)
        await driver.finish(lease)
    assert order == [*follow_ups, plain]
    await driver.check(quiescent=True)


async def test_a_continue_of_a_busy_lane_is_refused(driver: Driver) -> None:
    active = await driver.submit()
    async with driver.unchanged():
        with pytest.raises(ContinueRejectedError) as refused:
            await driver.submit("continue")
    assert refused.value.reason is ContinueRejectedReason.AGENT_ACTIVE
    assert refused.value.run_id == active.run_id


async def test_a_continue_of_nothing_is_refused(driver: Driver) -> None:
    async with driver.unchanged():
        with pytest.raises(ContinueRejectedError) as refused:
            await driver.submit("continue")
    assert refused.value.reason is ContinueRejectedReason.NO_PREVIOUS_RUN


@pytest.mark.parametrize("checked_out", [False, True])
async def test_a_run_that_never_began_is_no_previous_run(driver: Driver, checked_out: bool) -> None:
    run_id = (await driver.submit()).run_id
    if checked_out:
        lease = await driver.lease()
        await driver.checkout(lease)
        await driver.hand_back(lease)
    await driver.abort(run_id)
    await driver.check(quiescent=True)
    async with driver.unchanged():
        with pytest.raises(ContinueRejectedError) as refused:
            await driver.submit("continue")
    assert refused.value.reason is ContinueRejectedReason.NO_PREVIOUS_RUN


@pytest.mark.parametrize("stop_reason", StopReason)
async def test_a_continue_depends_on_how_the_last_run_stopped(
    driver: Driver, stop_reason: StopReason
) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.finish(lease, stop_reason)
    if stop_reason in CONTINUABLE:
        assert (await driver.submit("continue")).created
        await driver.check()
        return
    async with driver.unchanged():
        with pytest.raises(ContinueRejectedError) as refused:
            await driver.submit("continue")
    assert refused.value.reason is ContinueRejectedReason.UNSUPPORTED_STOP_REASON
    assert refused.value.run_id == lease.run_id


async def test_a_task_over_the_limit_is_refused(driver: Driver) -> None:
    async with driver.unchanged():
        with pytest.raises(PayloadTooLargeError) as refused:
            await driver.submit(task="ä" * (PAYLOAD_BYTES_MAX // 2 + 1))
    assert refused.value.size == PAYLOAD_BYTES_MAX + 2
    assert (await driver.submit(task="ä" * (PAYLOAD_BYTES_MAX // 2))).created


async def test_a_task_that_is_no_text_is_refused(driver: Driver) -> None:
    async with driver.unchanged():
        with pytest.raises(InvalidInputError):
            await driver.submit(task="\ud800")
