"""finish: a run ends once, and its lane goes on in the same step."""

import pytest
from msgspec.structs import replace
from tests.journal.builders import delta, intent_of, outcome_of, result_of, said, started
from tests.journal.driving import Driver

from runlane.journal.errors import BlobMissingError, SessionConflictError, SessionFencedError
from runlane.journal.transitions.settle import DISCARDED
from runlane.journal.wire.jobs import FollowUpFailurePolicy
from runlane.journal.wire.records import CONTROL_BRANCH, RunFinished
from runlane.journal.wire.results import StopReason


async def test_the_end_is_journaled_and_stored_and_the_lease_is_off(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    finished = await driver.finish(lease, entries=[said(lease)])
    *_, answer, end = await driver.records()
    assert answer.body == said(lease)
    assert end.record_id == finished.head
    assert end.body == RunFinished(run_id=lease.run_id, branch_id="main", result=result_of())
    run = await driver.run(lease.run_id)
    assert (run["state"], run["stop_reason"]) == ("completed", "text_response")
    await driver.check(quiescent=True)


async def test_little_is_kept_of_an_ended_run_and_not_for_ever(driver: Driver) -> None:
    lease = await driver.held(idempotency_key="k")
    begin = await driver.begin(lease)
    finished = await driver.finish(lease, entries=[said(lease)])
    run = await driver.run(lease.run_id)
    assert (run["begin"], run["end"]) == (begin, finished.head)
    assert sorted(run) == [
        *("agent", "attempt", "begin", "branch", "end", "finished_ms", "idem", "intent", "queue"),
        *("queued_id", "reply", "request", "session", "started_ms", "state", "stop_reason"),
        "submitted_ms",
    ]
    left_ms = await driver.partition.call("PTTL", driver.keys.run(lease.run_id))
    assert 0 < left_ms <= driver.partition.keep_runs_ms
    assert await driver.partition.call("PTTL", driver.keys.run((await driver.submit()).run_id)) < 0


async def test_a_checkpoint_may_follow_the_end(driver: Driver) -> None:
    lease = await driver.completed_with_checkpoint()
    end, checkpoint = (await driver.records())[-2:]
    assert (end.kind, checkpoint.kind) == ("run_finished", "checkpoint")
    assert checkpoint.parent_id == end.record_id
    assert checkpoint.record_id == driver.heads["s", "main"]
    assert (await driver.run(lease.run_id))["end"] == end.record_id
    assert (await driver.lane())["checkpoint"] == str(checkpoint.revision)
    assert await driver.redis.zrange(driver.keys.archive(), 0, -1) == [b"s"]
    await driver.check(quiescent=True)


async def test_a_blob_that_is_not_there_ends_nothing(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    asked = said(lease, calls=["look"])
    await driver.append(lease, [asked, intent_of(asked, 0)])
    blob = await driver.put_blob(b"much")
    outcome = replace(outcome_of(asked, 0), full=blob)
    await driver.partition.call("DEL", driver.keys.blob("s", blob.digest))
    async with driver.unchanged():
        with pytest.raises(BlobMissingError) as refused:
            await driver.finish(lease, entries=[outcome])
    assert (refused.value.session_id, refused.value.digest) == ("s", blob.digest)
    await driver.put_blob(b"much")
    await driver.finish(lease, entries=[outcome])
    assert (await driver.fields(driver.keys.blob("s", blob.digest)))["refs"] == "1"
    await driver.check(quiescent=True)


@pytest.mark.parametrize("stop_reason", StopReason)
async def test_a_run_can_end_for_every_reason(driver: Driver, stop_reason: StopReason) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.finish(lease, stop_reason)
    assert await driver.state(lease.run_id) == stop_reason.status
    await driver.check(quiescent=True)


async def test_the_next_run_of_the_lane_becomes_due(driver: Driver) -> None:
    lease = await driver.held()
    waiting = [(await driver.submit()).run_id for _ in range(2)]
    await driver.begin(lease)
    await driver.finish(lease)
    assert await driver.queued() == waiting[:1]
    assert await driver.waiting() == ([], waiting[1:])
    await driver.check()


async def test_a_run_that_never_began_can_end(driver: Driver) -> None:
    lease = await driver.held()
    await driver.finish(lease, StopReason.RUNTIME_ERROR)
    assert "last_run" not in await driver.lane()
    await driver.check(quiescent=True)


async def test_a_stale_head_ends_nothing(driver: Driver) -> None:
    lease = await driver.held()
    stale = await driver.begin(lease)
    head = await driver.append(lease, [said(lease)])
    async with driver.unchanged():
        for wrong in (stale, ""):
            with pytest.raises(SessionConflictError) as refused:
                await driver.finish(lease, head=wrong)
            assert refused.value.head_found == head


@pytest.mark.parametrize("forged", ["", "1:", "1:0000", "2:{nonce}"])
async def test_another_fence_ends_nothing(driver: Driver, forged: str) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    other = replace(lease, fence=forged.format(nonce=lease.fence.partition(":")[2]))
    async with driver.unchanged():
        with pytest.raises(SessionFencedError) as refused:
            await driver.finish(other)
    assert refused.value.fence_held == lease.fence


async def test_the_same_request_again_is_recognised_whatever_came_in_between(
    driver: Driver,
) -> None:
    lease = await driver.held()
    await driver.submit()
    await driver.begin(lease)
    finished = await driver.finish(lease)
    sent = driver.last
    expected = [b"DUP", finished.head.encode(), finished.at_ms]
    async with driver.unchanged():
        assert await driver.partition.resend(sent) == expected
    following = await driver.lease()
    await driver.begin(following)
    await driver.finish(following)
    async with driver.unchanged():
        assert await driver.partition.resend(sent) == expected
    await driver.check(quiescent=True)


async def test_another_end_of_an_ended_run_is_refused(driver: Driver) -> None:
    lease = await driver.completed()
    async with driver.unchanged():
        with pytest.raises(SessionFencedError):
            await driver.finish(lease, StopReason.RUNTIME_ERROR)


async def test_an_accepted_abort_wins_over_any_other_end(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.abort(lease.run_id, "enough")
    async with driver.unchanged():
        for reason in (StopReason.TEXT_RESPONSE, StopReason.MAX_STEPS, StopReason.TOOL_REJECTED):
            finished = await driver.finish(lease, reason, entries=[said(lease)])
            assert finished.abort_reason == "enough"
    assert not (await driver.finish(lease, StopReason.EXTERNAL_ABORT)).abort_reason
    assert await driver.state(lease.run_id) == "cancelled"
    await driver.check(quiescent=True)


@pytest.mark.parametrize("stop_reason", [StopReason.MAX_STEPS, StopReason.TOOL_REJECTED])
async def test_a_follow_up_of_a_run_that_does_not_complete_ends_with_its_own_record(
    driver: Driver, stop_reason: StopReason
) -> None:
    lease = await driver.held()
    plain = (await driver.submit()).run_id
    bound = [(await driver.submit("follow_up")).run_id for _ in range(2)]
    free = await driver.submit("follow_up", policy=FollowUpFailurePolicy.CONTINUE)
    await driver.begin(lease)
    await driver.finish(lease, stop_reason)
    for run_id in bound:
        run = await driver.run(run_id)
        assert (run["state"], run.get("stop_reason")) == ("cancelled", "superseded")
    ends = [(one.branch_id, one.body) for one in await driver.records()]
    assert [end for end in ends if isinstance(end[1], RunFinished)][1:] == [
        (CONTROL_BRANCH, RunFinished(run_id=run_id, branch_id="main", result=DISCARDED))
        for run_id in bound
    ]
    assert await driver.queued() == [free.run_id]
    assert await driver.waiting() == ([], [plain])
    await driver.check()


async def test_a_follow_up_of_a_completed_run_is_next(driver: Driver) -> None:
    lease = await driver.held()
    follow_up = await driver.submit("follow_up")
    await driver.begin(lease)
    await driver.finish(lease)
    assert await driver.queued() == [follow_up.run_id]


async def test_subscribers_hear_the_last_entries_and_the_end_in_order(driver: Driver) -> None:
    lease = await driver.held()
    await driver.checkout(lease)
    async with driver.hearing(driver.keys.events("s")) as heard:
        await driver.finish(lease, entries=[started(lease), delta(lease), said(lease)])
    assert [message[:1] for message in heard] == [b"R", b"P", b"R", b"R"]
    await driver.check(quiescent=True)
