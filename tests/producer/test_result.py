"""Waiting for the end of a run."""

import asyncio
from typing import Any

import pytest
from tests.producer.hand_worker import HandWorker
from tests.producer.support import DEADLINE_S, until_subscribed

from runlane.producer import (
    AgentRunError,
    Client,
    InvalidInputError,
    ResultTimeoutError,
    Session,
    StopReason,
    UnknownRunError,
)
from runlane.producer.hub import Feed


async def test_a_result_that_is_there_is_read_at_once(session: Session, worker: HandWorker) -> None:
    handle = await session.run("one")
    await worker.complete("yes")
    assert (await handle.result(timeout=0.5)).output == "yes"


async def test_many_wait_for_many(client: Client, worker: HandWorker) -> None:
    sessions = [client.session(f"s{number % 20}", agent="support") for number in range(100)]
    handles = await asyncio.gather(*(session.run("one") for session in sessions))
    waiting = [asyncio.create_task(handle.result(DEADLINE_S)) for handle in handles]
    carried_out = 0
    while carried_out < len(handles):
        for lease in await worker.claim():
            await worker.carry_out(lease, lease.run_id)
            carried_out += 1
    results = await asyncio.gather(*waiting)
    assert [result.output for result in results] == [handle.run_id for handle in handles]


async def test_the_callers_deadline_does_not_touch_the_run(
    session: Session, worker: HandWorker
) -> None:
    handle = await session.run("one")
    for timeout in (0, 0.05):
        with pytest.raises(ResultTimeoutError, match="it goes on") as late:
            await handle.result(timeout)
        assert late.value.run_id == handle.run_id
        assert isinstance(late.value, TimeoutError)
    await worker.complete("yes")
    assert (await handle).output == "yes"


@pytest.mark.parametrize("timeout", [-1, float("nan")])
async def test_a_bad_timeout_is_refused(session: Session, timeout: Any) -> None:
    handle = await session.run("one")
    with pytest.raises(InvalidInputError, match="timeout"):
        await handle.result(timeout)


@pytest.mark.parametrize("length", [10, 50_000])
async def test_an_end_is_heard_however_large_the_output(
    session: Session, worker: HandWorker, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr("runlane.producer.handles.REREAD_S", 1000)
    handle = await session.run("one")
    waiting = asyncio.create_task(handle.result(DEADLINE_S))
    await until_subscribed(worker.partition, session)
    held = await worker.begin()
    output = "".join(chr(0x4E00 + index % 20_000) for index in range(length))
    await held.finish(output)
    assert (await waiting).output == output


async def test_a_result_comes_though_no_message_does(
    session: Session, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runlane.producer.handles.REREAD_S", 0.05)
    monkeypatch.setattr("runlane.producer.hub.Feed.hear", hear_nothing)
    handle = await session.run("one")
    waiting = asyncio.create_task(handle.result(DEADLINE_S))
    await worker.complete("yes")
    assert (await waiting).output == "yes"


def hear_nothing(feed: Feed, message: bytes) -> None:
    del feed, message


async def test_a_run_that_the_server_has_lost(session: Session, worker: HandWorker) -> None:
    handle = await session.run("one")
    await worker.partition.call("DEL", worker.partition.keys.run(handle.run_id))
    with pytest.raises(UnknownRunError):
        await handle.result()


async def test_a_run_whose_session_was_deleted_is_said_to_be_unknown_for_that(
    session: Session, worker: HandWorker
) -> None:
    handle = await session.run("one")
    await worker.complete("yes")
    await session.delete()
    with pytest.raises(UnknownRunError, match="or its session was deleted"):
        await handle


async def test_an_end_other_than_completion_is_a_result(
    session: Session, worker: HandWorker
) -> None:
    handle = await session.run("one")
    await (await worker.begin()).finish("too often", stop_reason=StopReason.RATE_LIMITED)
    result = await handle
    assert not result.succeeded
    with pytest.raises(AgentRunError, match="rate_limited: too often"):
        result.raise_for_status()


async def test_giving_up_leaves_the_subscription(session: Session, worker: HandWorker) -> None:
    handle = await session.run("one")
    waiting = asyncio.create_task(handle.result(0.2))
    await until_subscribed(worker.partition, session)
    with pytest.raises(ResultTimeoutError):
        await waiting
    await until_subscribed(worker.partition, session, count=0)
