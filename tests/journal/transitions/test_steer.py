"""steer: what is said to the active run of a lane waits until the journal tells what came of it."""

import pytest
from tests.holds.places import place_of
from tests.journal.builders import heard, said, started, taken_over, unheard
from tests.journal.driving import Driver

from runlane.journal.transitions import delete_session, hold, steal
from runlane.journal.transitions.inputs import steering
from runlane.journal.transitions.steer import CAPACITY
from runlane.journal.wire.control import ControlReceipt, ControlStatus
from runlane.journal.wire.records import CONTROL_BRANCH, SteeringDiscarded
from runlane.journal.wire.results import StopReason


async def accepted(driver: Driver, content: str = "more") -> str:
    """Say something; return the id of the input."""
    receipt = await driver.steer(content)
    assert receipt.accepted
    assert receipt.input_id is not None
    return receipt.input_id


async def discarded(driver: Driver, session: str = "s") -> list[SteeringDiscarded]:
    records = await driver.records(session)
    return [record.body for record in records if isinstance(record.body, SteeringDiscarded)]


@pytest.mark.parametrize("state", ["queued", "leased", "running"])
async def test_the_active_run_is_steered_in_every_state(driver: Driver, state: str) -> None:
    run_id = (await driver.submit()).run_id
    lease = await driver.lease() if state != "queued" else None
    if lease and state == "running":
        await driver.begin(lease)
    receipt = await driver.steer("more")
    assert (receipt.run_id, receipt.status, receipt.queue_size) == (
        run_id,
        ControlStatus.ACCEPTED,
        1,
    )
    assert (await driver.steer("and more")).queue_size == 2
    assert await driver.state(run_id) == state
    await driver.check()


async def test_nothing_is_said_where_no_run_is_active(driver: Driver) -> None:
    idle = ControlReceipt(run_id="", status=ControlStatus.AGENT_IDLE, queue_size=0)
    async with driver.unchanged():
        assert await driver.steer() == idle
    await driver.completed()
    async with driver.unchanged():
        assert await driver.steer() == idle
        assert await driver.steer(branch="side") == idle
    await hold(driver.partition, place_of())
    async with driver.unchanged():
        assert await driver.steer() == idle


async def test_a_run_that_waits_behind_another_one_is_not_the_active_one(driver: Driver) -> None:
    lease = await driver.held()
    waiting = (await driver.submit()).run_id
    assert (await driver.steer()).run_id == lease.run_id
    await driver.finish(lease, StopReason.MAX_STEPS, entries=unheard(lease, *await ids(driver)))
    assert (await driver.steer()).run_id == waiting


async def ids(driver: Driver, run: str = "") -> list[str]:
    """Return the ids of the inputs that wait for the active run."""
    run_id = run or (await driver.lane())["active"]
    inputs = await driver.partition.call("LRANGE", driver.keys.steering(run_id), 0, -1)
    return [each.partition(b" ")[0].decode() for each in inputs]


async def test_a_run_that_was_told_to_stop_hears_nothing_more(driver: Driver) -> None:
    lease = await driver.held()
    await accepted(driver)
    await driver.abort(lease.run_id)
    async with driver.unchanged():
        receipt = await driver.steer()
    assert receipt == ControlReceipt(
        run_id=lease.run_id, status=ControlStatus.RUN_CLOSING, queue_size=1
    )


async def test_no_more_waits_than_there_is_room_for(driver: Driver) -> None:
    lease = await driver.held()
    assert [(await driver.steer()).queue_size for _ in range(CAPACITY)] == [*range(1, 17)]
    full = ControlReceipt(run_id=lease.run_id, status=ControlStatus.QUEUE_FULL, queue_size=CAPACITY)
    async with driver.unchanged():
        assert await driver.steer() == full
    first, *_ = await ids(driver)
    await driver.checkout(lease)
    await driver.append(lease, [started(lease), *heard(lease, first)])
    assert (await driver.steer()).queue_size == CAPACITY
    await driver.abort(lease.run_id)
    assert (await driver.steer()).status is ControlStatus.RUN_CLOSING


async def test_the_same_request_again_says_it_once_whatever_came_in_between(
    driver: Driver,
) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    input_id = await accepted(driver)
    sent = driver.last
    await accepted(driver)
    async with driver.unchanged():
        assert await driver.partition.resend(sent) == sent.reply
    await driver.append(lease, heard(lease, input_id))
    async with driver.unchanged():
        assert await driver.partition.resend(sent) == sent.reply
    await driver.finish(lease, StopReason.MAX_STEPS, entries=unheard(lease, *await ids(driver)))
    await driver.held()
    async with driver.unchanged():
        assert await driver.partition.resend(sent) == sent.reply
    await driver.check()


async def test_an_input_is_recognised_for_a_while_only(driver: Driver) -> None:
    await driver.held()
    input_id = await accepted(driver)
    assert 0 < await driver.partition.call("PTTL", driver.keys.input(input_id)) <= 3_600_000


async def test_the_worker_is_told_what_was_said_and_in_which_attempt(driver: Driver) -> None:
    await driver.submit()
    async with driver.hearing(driver.keys.control("w1")) as heard_by_nobody:
        await accepted(driver)
    assert heard_by_nobody == []
    lease = await driver.lease()
    async with driver.hearing(driver.keys.control("w1")) as heard_by_worker:
        input_id = await accepted(driver, "one\0two\nthree")
    message = "\0".join(("", "", lease.run_id, lease.fence, input_id, "one\0two\nthree"))
    assert heard_by_worker == [message.encode()]


async def test_a_checkout_brings_what_waits_and_a_crash_keeps_it(driver: Driver) -> None:
    await driver.submit()
    first = steering(await accepted(driver, "one \0\n one"), "one \0\n one")
    lease = await driver.lease()
    second = steering(await accepted(driver, "zwei → 二"), "zwei → 二")
    assert (await driver.checkout(lease)).inputs == (first, second)
    await driver.append(lease, [started(lease), *heard(lease, first.input_id)])
    await driver.expire(lease)
    lease = await driver.lease("w2")
    assert (await driver.checkout(lease)).inputs == (second,)
    await driver.hand_back(lease)
    lease = await driver.lease("w1")
    await steal(driver.partition, lease.run_id, branch_id="main", reason="it hangs")
    lease = await driver.lease("w2")
    assert (await driver.checkout(lease)).inputs == (second,)
    await driver.check()


async def test_an_append_brings_what_waits_after_it(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    assert len(driver.last.reply) == 4
    first, second = await accepted(driver, "one"), await accepted(driver, "two")
    await driver.append(lease, [said(lease)])
    waiting = [f"{first} one".encode(), f"{second} two".encode()]
    assert driver.last.reply[4:] == [waiting]
    await driver.append(lease, heard(lease, second, turn=2))
    sent = driver.last
    assert sent.reply[4:] == [waiting[:1]]
    async with driver.unchanged():
        assert await driver.partition.resend(sent) == [b"DUP", *sent.reply[1:]]
    await driver.append(lease, heard(lease, first, turn=2))
    assert len(driver.last.reply) == 4
    await driver.append(lease, [said(lease, 2)])
    assert len(driver.last.reply) == 4
    assert "inputs" not in await driver.run(lease.run_id)
    await driver.check()


async def test_an_id_that_is_part_of_another_one_takes_nothing_out(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    input_id = await accepted(driver)
    await driver.append(lease, heard(lease, f"{lease.run_id}:1:hook:0", f"x{input_id}x"))
    assert await ids(driver) == [input_id]


async def test_a_completed_run_does_not_end_while_somebody_is_to_be_heard(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    first, second = await accepted(driver, "one"), await accepted(driver, "two")
    for settled in ([], heard(lease, second)):
        async with driver.unchanged():
            refused = await driver.finish(lease, entries=[said(lease), *settled])
        assert not refused.ended
        assert refused.pending[0] == steering(first, "one")
        assert len(refused.pending) == 2 - len(settled)
    await driver.append(lease, [said(lease), *heard(lease, first, second, turn=2)])
    assert (await driver.finish(lease, entries=[said(lease, 2)])).ended
    await driver.check(quiescent=True)


async def test_an_accepted_abort_comes_before_what_was_said(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    input_id = await accepted(driver)
    await driver.abort(lease.run_id, "enough")
    refused = await driver.finish(lease, entries=[said(lease)])
    assert (refused.abort_reason, refused.pending) == ("enough", ())
    reason = StopReason.EXTERNAL_ABORT
    (pending,) = (await driver.finish(lease, reason)).pending
    assert pending.input_id == input_id
    await driver.finish(lease, reason, entries=unheard(lease, input_id, reason=reason))
    await driver.check(quiescent=True)


async def test_a_run_that_ends_otherwise_says_what_it_did_not_hear(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    input_id = await accepted(driver)
    finished = await driver.finish(
        lease, StopReason.MAX_STEPS, entries=[said(lease), *unheard(lease, input_id)]
    )
    assert finished.ended
    async with driver.unchanged():
        assert (await driver.partition.resend(driver.last))[0] == b"DUP"
    *_, before, end = await driver.records()
    assert (before.kind, end.kind, end.parent_id) == (
        "steering_discarded",
        "run_finished",
        before.record_id,
    )
    await driver.check(quiescent=True)


@pytest.mark.parametrize("begun", [False, True], ids=["waiting", "begun"])
@pytest.mark.parametrize("end", ["abort", "settle", "delete"])
async def test_a_run_that_ends_without_its_worker_discards_what_it_did_not_hear(
    driver: Driver, end: str, begun: bool
) -> None:
    lease = await driver.held()
    head = await driver.begin(lease) if begun else ""
    await driver.hand_back(lease)
    contents = ["one \0\n one", "zwei → 二" * 2000]
    inputs = [await accepted(driver, content) for content in contents]
    async with driver.hearing(driver.keys.events("s")) as told:
        match end:
            case "abort":
                await driver.abort(lease.run_id)
            case "settle":
                await driver.settle(lease.run_id)
            case _:
                await delete_session(driver.partition, "s")
    bodies = await discarded(driver)
    assert [(body.input_id, body.content) for body in bodies] == [
        *zip(inputs, contents, strict=True)
    ]
    reason = StopReason.WORKER_LOST if end == "settle" else StopReason.EXTERNAL_ABORT
    assert {(body.run_id, body.branch_id, body.reason) for body in bodies} == {
        (lease.run_id, "main", reason)
    }
    first, second, finished = (await driver.records())[-3:]
    assert {each.branch_id for each in (first, second, finished)} == {
        "main" if begun else CONTROL_BRANCH
    }
    assert second.parent_id == first.record_id
    assert finished.parent_id == second.record_id
    assert finished.kind == "run_finished"
    if begun:
        assert first.parent_id == head
    assert len(told) == 3 + (end == "abort")
    await driver.check(quiescent=True)


async def test_a_dead_letter_discards_what_it_did_not_hear(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    input_id = await accepted(driver)
    assert await driver.settle(lease.run_id, dead_reason="damaged", fence=lease.fence)
    assert [body.input_id for body in await discarded(driver)] == [input_id]
    await driver.check(quiescent=True)


async def test_the_time_since_the_first_attempt_goes_on_over_a_crash(driver: Driver) -> None:
    lease = await driver.held()
    assert (await driver.checkout(lease)).elapsed_s == 0
    await driver.append(lease, [started(lease)])
    began = int((await driver.run(lease.run_id))["started_ms"])
    await driver.partition.call("HSET", driver.keys.run(lease.run_id), "started_ms", began - 90_000)
    await driver.expire(lease)
    lease = await driver.lease("w2")
    assert 90 <= (await driver.checkout(lease)).elapsed_s < 90 + 3600
    await driver.append(lease, [taken_over(lease)])
