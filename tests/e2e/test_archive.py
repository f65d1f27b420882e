"""Workers that keep their deployment small while they execute runs."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from redis.asyncio import Redis
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_calls, check_rest
from tests.e2e.waiting import until

from runlane.journal.errors import UnknownRunError, UnknownSessionError
from runlane.journal.partition import Partition
from runlane.journal.transitions import delete_session
from runlane.producer import Client, Event, EventKind, RunStatus, Settings, StopReason

TURNS, CALLS = 9, 12
LONG = f"[[tools {' ; '.join(['look'] * CALLS)}]] " * TURNS
"""Enough for a checkpoint."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
async def client(fleet: Fleet, store: Path) -> AsyncIterator[Client]:
    settings = Settings(redis_url=fleet.url, prefix=fleet.prefix, archive=str(store))
    async with await Client.connect(settings=settings) as connected:
        yield connected


def block(store: Path) -> None:
    store.write_text("no folder")


def unblock(store: Path) -> None:
    store.unlink()


def move(store: Path, target: Path) -> Path:
    return store.rename(target)


def give_away(store: Path) -> None:
    store.mkdir()
    (store / "deployment").write_text("somebody else's")


async def test_a_long_run_is_archived_while_it_goes_on(
    fleet: Fleet, client: Client, redis: Redis, store: Path
) -> None:
    worker = await fleet.start(archive=store)
    session = client.session("long", agent="clerk")
    handle = await session.run(LONG + '[[tool hold {"gate": "end"}]] [[tool pay]]')
    await until(lambda: len(fleet.ledger.all("hold")) == 1, "the run waits")

    async def is_trimmed() -> bool:
        return int(await redis.xlen(fleet.keys.log("long"))) < 60

    await until(is_trimmed, "its older records are in the archive")
    assert not (await handle.status()).state.ended
    worker.kill()  # the next worker reads a checkpoint and what came after it
    await fleet.start(archive=store)
    fleet.open("end")
    assert (await handle).status is RunStatus.COMPLETED
    story = await Story.read(client, "long")
    assert [record.revision for record in story.records] == list(range(1, len(story.records) + 1))
    check_calls(fleet, [story])
    assert worker.logged("session_archived") == 1
    events = [event async for event in handle.events()]
    assert sum(event.kind is EventKind.TOOL_COMPLETED for event in events) == TURNS * CALLS + 2
    await check_rest(fleet)


async def test_a_cold_session_goes_to_the_archive_and_wakes(
    fleet: Fleet, client: Client, redis: Redis, store: Path
) -> None:
    await fleet.start(archive=store, cold_s=1)
    session = client.session("cold", agent="clerk")
    first = await session.run("[[tool look]] one")
    assert (await first).status is RunStatus.COMPLETED

    async def is_cold() -> bool:
        return not await redis.xlen(fleet.keys.log("cold"))

    await until(is_cold, "all of its records are in the archive")
    before = await session.messages()
    assert (await (await session.run("two"))).status is RunStatus.COMPLETED
    assert (await session.messages())[: len(before)] == before
    assert (await first.result()).status is RunStatus.COMPLETED
    await until(is_cold, "it is cold again")
    await check_rest(fleet)


async def test_runs_go_on_while_the_archive_is_away(
    fleet: Fleet, client: Client, redis: Redis, store: Path
) -> None:
    block(store)
    worker = await fleet.start(archive=store, cold_s=1)
    await worker.until_logged("archive_away")
    session = client.session("s", agent="clerk")
    assert (await (await session.run("one"))).status is RunStatus.COMPLETED
    await worker.until_logged("upkeep_put_off")
    assert (await (await session.run("two"))).status is RunStatus.COMPLETED
    unblock(store)

    async def is_archived() -> bool:
        return not await redis.xlen(fleet.keys.log("s"))

    await until(is_archived, "the archive is used once it is back")
    assert len((await session.checkout()).messages) == 4
    worker.terminate()
    assert await worker.ended() == 0


async def test_a_run_of_a_cold_session_waits_for_the_archive(
    fleet: Fleet, client: Client, redis: Redis, store: Path
) -> None:
    worker = await fleet.start(archive=store, cold_s=1)
    session = client.session("cold", agent="clerk")
    assert (await (await session.run("one"))).status is RunStatus.COMPLETED

    async def is_cold() -> bool:
        return not await redis.xlen(fleet.keys.log("cold"))

    await until(is_cold, "all of its records are in the archive")
    away = move(store, store.with_name("away"))
    handle = await session.run("two")
    await worker.until_logged("waiting_for_archive")
    move(away, store)
    assert (await handle).status is RunStatus.COMPLETED
    assert (await handle.status()).attempt == 1
    assert len(await session.messages()) == 4


async def test_an_archive_of_another_deployment_is_refused_at_the_start(
    fleet: Fleet, store: Path
) -> None:
    give_away(store)
    worker = fleet.launch(archive=store)
    assert await worker.ended() != 0
    assert "belongs to deployment somebody else's" in worker.text


async def test_deleting_a_session_stops_its_runs(
    fleet: Fleet, client: Client, redis: Redis, store: Path
) -> None:
    worker = await fleet.start(archive=store)
    session = client.session("doomed", agent="clerk")
    running = await session.run('[[tool hold {"gate": "never"}]]')
    waiting = await session.run("next")
    await until(lambda: len(fleet.ledger.all("hold")) == 1, "the run holds")
    heard: list[Event] = []
    async with aclosing(session.events()) as events:
        async for event in events:
            heard.append(event)
            if event.kind is EventKind.TOOL_STARTED:
                break
        await session.delete()
        while sum(event.terminal for event in heard) < 2:
            heard.append(await anext(events))
    ends = {event.run_id: event.payload["result"] for event in heard if event.terminal}
    assert set(ends) == {running.run_id, waiting.run_id}
    assert {end["stop_reason"] for end in ends.values()} == {StopReason.EXTERNAL_ABORT}
    await worker.until_logged("run_stopped")
    with pytest.raises(UnknownRunError):
        await running.status()
    with pytest.raises(UnknownSessionError):
        await session.delete()
    assert not await redis.keys(f"{fleet.prefix}:*doomed*")
    assert (await (await session.run("again"))).status is RunStatus.COMPLETED
    assert (await session.messages())[0].content == "again"
    await check_rest(fleet)


async def test_workers_finish_what_others_began_to_delete(
    fleet: Fleet, client: Client, partition: Partition, redis: Redis, store: Path
) -> None:
    await fleet.start(archive=store)
    for name in ("abandoned", "kept"):
        run = await client.session(name, agent="clerk").run("hello")
        assert (await run).status is RunStatus.COMPLETED
    await delete_session(partition, "abandoned", resume_ms=0)

    async def is_gone() -> bool:
        return not await redis.exists(fleet.keys.session("abandoned"))

    await until(is_gone, "the deletion is finished")
    assert await redis.exists(fleet.keys.session("kept"))
    await check_rest(fleet)


async def test_workers_delete_sessions_that_nobody_uses(
    fleet: Fleet, client: Client, redis: Redis, store: Path
) -> None:
    await fleet.start(archive=store, keep_sessions_s=1)
    run = await client.session("unused", agent="clerk").run("hello")
    assert (await run).status is RunStatus.COMPLETED
    busy = await client.session("busy", agent="clerk").run('[[tool hold {"gate": "end"}]]')

    async def is_gone() -> bool:
        return not await redis.exists(fleet.keys.session("unused"))

    await until(is_gone, "the session is deleted")
    assert not (await busy.status()).state.ended
    fleet.open("end")
    assert (await busy).status is RunStatus.COMPLETED
