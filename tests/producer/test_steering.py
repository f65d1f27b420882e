"""Saying something to a run that goes on, from any process."""

from typing import Any

import pytest
from tests.producer.hand_worker import HandWorker
from tests.producer.shell import Shell
from tests.producer.support import first

from runlane.producer import (
    Client,
    ControlReceipt,
    ControlStatus,
    EventKind,
    InvalidInputError,
    RunStatus,
    Session,
    StopReason,
)

pytestmark = pytest.mark.usefixtures("sound")


async def test_a_run_hears_what_is_said_to_its_session(
    session: Session, worker: HandWorker
) -> None:
    handle = await session.run("one")
    receipt = await session.steer("  in French,\n please \n")
    assert (receipt.run_id, receipt.status) == (handle.run_id, ControlStatus.ACCEPTED)
    assert receipt.queue_size == 1
    held = await worker.begin()
    assert [each.content for each in held.inputs] == ["in French,\n please"]
    await held.hear()
    await held.finish("oui")
    assert (await handle).output == "oui"
    assert [message.content for message in await session.messages()] == [
        *("hi", "in French,\n please")
    ]
    *_, applied, _ = await first(4, session.events())
    assert (applied.kind, applied.run_id) == (EventKind.STEERING_APPLIED, handle.run_id)
    assert applied.payload == {
        "input_id": receipt.input_id,
        "content": "in French,\n please",
        "target_turn": 1,
    }


async def test_a_receipt_says_why_nobody_will_hear_it(session: Session, worker: HandWorker) -> None:
    idle = ControlReceipt(run_id="", status=ControlStatus.AGENT_IDLE, queue_size=0)
    assert await session.steer("more") == idle
    handle = await session.run("one")
    for size in range(1, 17):
        assert (await session.steer("more")).queue_size == size
    full = ControlReceipt(run_id=handle.run_id, status=ControlStatus.QUEUE_FULL, queue_size=16)
    assert await session.steer("more") == full
    held = await worker.begin()
    await handle.abort()
    closing = await session.steer("more")
    assert (closing.status, closing.accepted) == (ControlStatus.RUN_CLOSING, False)
    await held.hear()
    await held.finish(stop_reason=StopReason.EXTERNAL_ABORT)
    assert await session.steer("more") == idle


async def test_a_run_that_is_aborted_before_it_began_says_what_it_did_not_hear(
    session: Session,
) -> None:
    handle = await session.run("one")
    receipt = await session.steer("more")
    await handle.abort("enough")
    assert (await handle).status is RunStatus.CANCELLED
    events = [event async for event in handle.events()]
    discarded, end = events[-2:]
    assert (discarded.kind, discarded.run_id, discarded.branch_id) == (
        EventKind.STEERING_DISCARDED,
        handle.run_id,
        "main",
    )
    assert discarded.payload == {
        "input_id": receipt.input_id,
        "content": "more",
        "reason": "external_abort",
    }
    assert end.terminal


async def test_a_branch_is_steered_apart_from_the_others(
    client: Client, session: Session, worker: HandWorker
) -> None:
    await session.run("one")
    await worker.complete()
    side = await session.fork(name="side")
    await session.run("two")
    assert (await side.steer("more")).status is ControlStatus.AGENT_IDLE
    handle = await side.run("three")
    again = client.session(session.session_id, branch="side")
    assert (await again.steer("more")).run_id == handle.run_id


@pytest.mark.parametrize(
    "content", ["", " \n ", "x" * 16_385, "\ud800", "a\udfff", None, 7, b"more"]
)
async def test_what_cannot_be_said_is_refused(session: Session, content: Any) -> None:
    handle = await session.run("one")
    with pytest.raises(InvalidInputError, match="the steering"):
        await session.steer(content)
    await handle.abort()
    kinds = [event.kind async for event in handle.events()]
    assert EventKind.STEERING_DISCARDED not in kinds


async def test_as_much_is_said_as_there_is_room_for(session: Session) -> None:
    await session.run("one")
    assert (await session.steer(16_384 * "\U0001f4a1" + "\n")).accepted


async def test_the_command_steers_and_says_whether_it_will_be_heard(
    shell: Shell, session: Session, worker: HandWorker
) -> None:
    code, out, _ = await shell.run("steer", "s1", "more")
    assert (code, out) == (2, "agent_idle\n")
    handle = await session.run("one")
    code, out, _ = await shell.run("steer", "s1", "more", "--branch", "main")
    held = await worker.begin()
    (given,) = held.inputs
    assert (code, out) == (0, f"{handle.run_id} accepted {given.input_id}\n")
    code, _, err = await shell.run("steer", "s1", " ")
    assert (code, err) == (2, "error: the steering is empty\n")
