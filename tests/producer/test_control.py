"""Stopping runs, and looking at runs and sessions."""

from typing import Any

import pytest
from tests.producer.hand_worker import HandWorker
from tests.producer.support import first

from runlane.journal.ids import new_run_id
from runlane.producer import (
    Client,
    ControlStatus,
    InvalidInputError,
    RunState,
    RunStatus,
    Session,
    StopReason,
    UnknownRunError,
    UnknownSessionError,
    overview,
)


async def test_a_waiting_run_ends_when_it_is_aborted(client: Client, session: Session) -> None:
    handle = await session.run("one")
    receipt = await client.abort(handle.run_id, "wrong customer")
    assert (receipt.run_id, receipt.status) == (handle.run_id, ControlStatus.ACCEPTED)
    result = await handle.result(timeout=5)
    assert (result.status, result.stop_reason) == (
        RunStatus.CANCELLED,
        StopReason.EXTERNAL_ABORT,
    )
    assert result.error == "wrong customer"


async def test_a_running_run_is_told(session: Session, worker: HandWorker) -> None:
    handle = await session.run("one")
    held = await worker.begin()
    assert (await handle.abort()).accepted
    assert (await handle.abort("again")).accepted
    assert (await handle.status()).state is RunState.RUNNING
    await held.finish("stopped", stop_reason=StopReason.EXTERNAL_ABORT)
    assert (await handle).status is RunStatus.CANCELLED
    assert (await handle.abort()).accepted


async def test_a_run_that_ended_by_itself_cannot_be_aborted(
    client: Client, session: Session, worker: HandWorker
) -> None:
    handle = await session.run("one")
    await worker.complete()
    assert (await client.abort(handle.run_id)).status is ControlStatus.RUN_FINISHED


async def test_a_session_aborts_its_active_run(session: Session) -> None:
    active, waiting = await session.run("one"), await session.run("two")
    assert (await session.abort()).run_id == active.run_id
    assert (await waiting.status()).state is RunState.QUEUED
    assert (await session.abort()).run_id == waiting.run_id
    receipt = await session.abort()
    assert (receipt.run_id, receipt.status) == ("", ControlStatus.AGENT_IDLE)


@pytest.mark.parametrize("reason", ["", " ", "r" * 1001, "\ud800", 3])
async def test_a_bad_reason_is_refused(client: Client, session: Session, reason: Any) -> None:
    handle = await session.run("one")
    for verb in (session.abort, handle.abort):
        with pytest.raises(InvalidInputError, match="reason"):
            await verb(reason)
    with pytest.raises(InvalidInputError, match="reason"):
        await client.abort(handle.run_id, reason)
    assert (await handle.status()).state is RunState.QUEUED


async def test_a_run_must_exist(client: Client, session: Session) -> None:
    nowhere = new_run_id()
    for verb in (client.run_handle, client.status, client.abort):
        with pytest.raises(UnknownRunError, match=nowhere):
            await verb(nowhere)
        for bad in ("", "17", None, "\ud800"):
            value: Any = bad
            with pytest.raises(InvalidInputError, match="run id"):
                await verb(value)


async def test_a_handle_can_be_made_again_from_the_run_id(
    client: Client, session: Session, worker: HandWorker
) -> None:
    made = await session.run("one")
    handle = await client.run_handle(made.run_id.upper())
    assert (handle.run_id, handle.session_id, handle.branch_id) == (made.run_id, "s1", "main")
    await worker.complete("yes")
    assert (await handle).output == "yes"
    assert await client.status(made.run_id) == await handle.status()


async def test_the_life_of_a_run(session: Session, worker: HandWorker) -> None:
    handle = await session.run("one")
    info = await handle.status()
    assert (info.state, info.attempt, info.worker, info.result) == (RunState.QUEUED, 0, None, None)
    (lease,) = await worker.claim()
    info = await handle.status()
    assert (info.state, info.attempt, info.worker) == (RunState.LEASED, 1, "hand")
    key = worker.partition.keys.queue(lease.queue)
    await worker.partition.call("ZADD", key, 1, lease.run_id)
    held = await worker.begin()
    info = await handle.status()
    assert (info.state, info.attempt, info.crashes) == (RunState.RUNNING, 2, 1)
    assert info.started_ms is not None
    await held.finish("no", stop_reason=StopReason.RATE_LIMITED)
    info = await handle.status()
    assert (info.state, info.stop_reason) == (RunState.FAILED, StopReason.RATE_LIMITED)
    assert info.state.ended
    assert info.result is not None
    assert info.submitted_ms <= (info.started_ms or 0) <= (info.finished_ms or 0)


async def test_a_run_that_no_live_worker_serves_is_pending(
    session: Session, worker: HandWorker
) -> None:
    any_version = await session.run("one")
    exact, next_version = (
        await session.run("two", version="1"),
        await session.run("three", version="2"),
    )
    assert (await any_version.status()).state is RunState.QUEUED
    assert (await exact.status()).state is RunState.QUEUED
    info = await next_version.status()
    assert (info.state, info.version) == (RunState.PENDING_VERSION, "2")
    await worker.register(lease_ms=0)
    assert (await any_version.status()).state is RunState.PENDING_VERSION
    await HandWorker(worker.partition, {"support": "2"}, "other").register()
    assert (await any_version.status()).state is RunState.QUEUED
    assert (await exact.status()).state is RunState.PENDING_VERSION
    assert (await next_version.status()).state is RunState.QUEUED


async def test_the_status_of_a_session(
    client: Client, session: Session, worker: HandWorker
) -> None:
    with pytest.raises(UnknownSessionError):
        await session.status()
    first = await session.run("one")
    status = await session.status()
    assert (status.agent, status.revision, status.active_run) == ("support", 1, first.run_id)
    assert status.last_run is None
    await worker.complete()
    status = await session.status()
    assert (status.active_run, status.last_run) == (None, first.run_id)
    assert status.last_stop_reason is StopReason.TEXT_RESPONSE
    draft = await client.session("s1", branch="draft").status()
    assert (draft.revision, draft.last_run) == (status.revision, None)


async def test_the_transcript_and_the_records(session: Session, worker: HandWorker) -> None:
    await session.run("one")
    await worker.complete("yes")
    assert [message.content for message in await session.messages()] == ["hi", "yes"]
    records = [record async for record in session.records()]
    assert [record.revision for record in records] == [1, 2, 3, 4]
    assert records[-1].kind == "run_finished"
    events = await first(4, session.events())
    assert [event.cursor for event in events] == [record.record_id for record in records]


async def test_sessions_are_listed_by_their_last_submit(
    client: Client, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "PAGE", 3)
    names = [f"s{number}" for number in range(11)]
    for name in names:
        await client.session(name, agent="support").run("one")
    scores = {name: 1000 + number // 5 for number, name in enumerate(names)}
    for name, score in scores.items():
        await worker.partition.call("ZADD", worker.partition.keys.sessions(), score, name)
    listed = [info async for info in client.sessions()]
    assert [info.submitted_ms for info in listed] == sorted(scores.values(), reverse=True)
    assert {info.session_id: info.submitted_ms for info in listed} == scores
    assert len(listed) == len(names)
    assert {info.agent for info in listed} == {"support"}


async def test_another_prefix_does_not_see_a_run(session: Session, redis_url: str) -> None:
    handle = await session.run("one")
    async with await Client.connect(redis_url) as other:
        with pytest.raises(UnknownRunError):
            await other.status(handle.run_id)
