"""The blocking client, driven from threads while a worker runs in an event loop."""

import asyncio
import os
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tests.producer.hand_worker import HandWorker
from tests.producer.support import DEADLINE_S, until, until_subscribed

from runlane.journal.wire.messages import UserMessage
from runlane.journal.wire.tree import HistoryImported
from runlane.producer import (
    Client,
    ControlStatus,
    EventKind,
    InvalidInputError,
    ResultTimeoutError,
    RunlaneError,
    RunState,
    ServerUnavailableError,
    SessionLockTimeoutError,
    Settings,
    StopReason,
    SyncClient,
    SyncRunHandle,
)


@pytest.fixture
async def sync_client(settings: Settings, worker: HandWorker) -> AsyncIterator[SyncClient]:
    client = await asyncio.to_thread(SyncClient.connect, settings=settings)
    yield client
    await asyncio.to_thread(client.close)


async def test_all_verbs(sync_client: SyncClient, worker: HandWorker) -> None:
    session = sync_client.session("s1", agent="support")

    def first() -> tuple[SyncRunHandle, SyncRunHandle]:
        handle = session.run("one", idempotency_key="k")
        assert session.run("one", idempotency_key="k").run_id == handle.run_id
        following = session.follow_up("two")
        assert sync_client.status(handle.run_id).state is RunState.QUEUED
        assert session.steer("more").run_id == handle.run_id
        with pytest.raises(ResultTimeoutError):
            handle.result(timeout=0.05)
        return handle, following

    handle, following = await asyncio.to_thread(first)
    held = await worker.begin()
    await held.hear()
    await held.finish("yes")
    await (await worker.begin()).finish("no", stop_reason=StopReason.MAX_STEPS)

    def second() -> None:
        assert handle.result(timeout=DEADLINE_S).output == "yes"
        assert sync_client.run_handle(following.run_id).result().stop_reason == "max_steps"
        continued = session.continue_run()
        assert continued.abort("enough").accepted
        assert sync_client.abort(continued.run_id).status is ControlStatus.ACCEPTED
        assert session.abort().status is ControlStatus.AGENT_IDLE
        assert continued.status().state is RunState.CANCELLED
        assert [info.session_id for info in sync_client.sessions()] == ["s1"]
        assert session.status().active_run is None
        assert len(session.messages()) == 3

    await asyncio.to_thread(second)


async def test_the_tree_and_its_files(
    sync_client: SyncClient, worker: HandWorker, tmp_path: Path
) -> None:
    session = sync_client.session("s1", agent="support")
    handle = await asyncio.to_thread(session.run, "one")
    await worker.complete("yes")

    def branch() -> None:
        head = session.head()
        assert head is not None
        assert next(record.record_id for record in session.records(newest_first=True)) == head
        assert session.fork(name="fork").branch_id == "fork"
        assert session.rollback(head, name="back").head() != head
        assert session.prepare_retry(handle.run_id, name="again").task == "hi"
        assert session.checkout(head).record_id == head
        assert [info.branch_id for info in session.list_branches()] == [
            *("main", "fork", "back", "again")
        ]
        assert sync_client.session("s1", branch="fork").promote() == session.head()

    def move() -> None:
        told: list[int] = []
        path = tmp_path / "s1.jsonl"
        report = session.export_jsonl(path, progress=lambda done, _: told.append(done))
        copy = sync_client.session("copy")
        assert copy.import_jsonl(path, progress=lambda done, _: told.append(done)).branches == 4
        assert copy.messages() == session.messages()
        assert told[0] == report.revision
        copy.delete()
        assert [info.session_id for info in sync_client.sessions()] == ["s1"]

    await asyncio.to_thread(branch)
    await asyncio.to_thread(move)


async def test_a_held_lane_is_a_with_block(sync_client: SyncClient, worker: HandWorker) -> None:
    session = sync_client.session("s1", agent="support")
    handle = await asyncio.to_thread(session.run, "one")
    (held,) = await worker.claim()

    def steal() -> None:
        assert session.steal("it hangs").run_id == handle.run_id

    def hold() -> None:
        with session.hold(timeout=DEADLINE_S) as lane:
            assert lane.head == session.head()
            with pytest.raises(SessionLockTimeoutError), session.hold(timeout=0):
                pass
            messages = (UserMessage("older"),)
            lane.append(HistoryImported(format="x", document="{}", messages=messages))
            assert lane.checkout().messages == list(messages)
        with pytest.raises(ZeroDivisionError), session.hold():
            raise ZeroDivisionError

    await asyncio.to_thread(steal)
    (again,) = await worker.claim()
    assert again.fence != held.fence
    await worker.carry_out(again, "yes")
    await asyncio.to_thread(hold)


async def test_events_are_an_iterator(sync_client: SyncClient, worker: HandWorker) -> None:
    session = sync_client.session("s1", agent="support")
    handle = await asyncio.to_thread(session.run, "one")
    kinds: list[EventKind] = []

    def follow() -> None:
        for event in handle.events():
            kinds.append(event.kind)  # noqa: PERF401 (while the run goes on)

    following = asyncio.create_task(asyncio.to_thread(follow))
    await until(lambda: kinds == [EventKind.RUN_QUEUED])
    await worker.complete()
    async with asyncio.timeout(DEADLINE_S):
        await following
    assert kinds[-1] is EventKind.AGENT_FINISHED


async def test_who_leaves_an_iterator_is_not_served_any_more(
    client: Client, sync_client: SyncClient, worker: HandWorker
) -> None:
    session = client.session("s1", agent="support")
    await session.run("one")

    def peek() -> int:
        for event in sync_client.session("s1").events():
            return event.revision
        return 0

    assert await asyncio.to_thread(peek) == 1
    await until_subscribed(worker.partition, session, count=0)


LEAVER = """
from runlane.producer import SyncClient
events = SyncClient.connect().session("s1").events()
print(next(events).revision)
"""


async def test_a_process_that_closes_nothing_can_exit(
    client: Client, worker: HandWorker, settings: Settings
) -> None:
    await client.session("s1", agent="support").run("one")
    environ = {"RUNLANE_REDIS_URL": settings.redis_url or "", "RUNLANE_PREFIX": settings.prefix}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", LEAVER), env={**os.environ, **environ}, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(DEADLINE_S):
        assert await process.communicate() == (b"1\n", b"")
    assert process.returncode == 0


async def test_many_threads_share_one_client(sync_client: SyncClient, worker: HandWorker) -> None:
    def ask(number: int) -> str | None:
        handle = sync_client.session(f"s{number}", agent="support").run("one")
        return handle.result(timeout=DEADLINE_S).output

    with ThreadPoolExecutor(20) as threads:
        loop = asyncio.get_running_loop()
        answers = [loop.run_in_executor(threads, ask, number) for number in range(60)]
        while not all(answer.done() for answer in answers):
            for lease in await worker.claim():
                await worker.carry_out(lease, lease.session_id)
            await asyncio.sleep(0)
        assert [await answer for answer in answers] == [f"s{number}" for number in range(60)]


async def test_errors_are_those_of_the_client(
    sync_client: SyncClient, settings: Settings, unused_port: int
) -> None:
    with pytest.raises(InvalidInputError, match="task"):
        await asyncio.to_thread(sync_client.session("s1", agent="support").run, "")
    url = f"redis://127.0.0.1:{unused_port}"
    with pytest.raises(ServerUnavailableError):
        await asyncio.to_thread(SyncClient.connect, url, settings=Settings(retry_s=0))
    loops = [thread for thread in threading.enumerate() if thread.name == "runlane-sync"]
    assert len(loops) == 1


async def test_closing_ends_the_calls_that_wait(settings: Settings, worker: HandWorker) -> None:
    client = await asyncio.to_thread(partial(SyncClient.connect, settings=settings))
    session = client.session("s1", agent="support")
    handle = await asyncio.to_thread(session.run, "one")
    events = session.events()
    assert (await asyncio.to_thread(next, events)).revision == 1
    waiting = [
        asyncio.create_task(asyncio.to_thread(handle.result)),
        asyncio.create_task(asyncio.to_thread(next, events)),
    ]
    await asyncio.to_thread(client.close)
    for task in waiting:
        with pytest.raises(RunlaneError, match="closed"):
            await task
    with pytest.raises(RunlaneError, match="closed"):
        handle.status()
    client.close()


async def test_a_forked_process_is_told(
    sync_client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 0)
        with pytest.raises(RunlaneError, match="fork"):
            sync_client.session("s1").status()
