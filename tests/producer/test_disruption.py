"""Nothing committed is missed, doubled or out of order, whatever happens to connections."""

import asyncio
import random
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from tests.conftest import bundled_binary
from tests.producer.hand_worker import HandWorker
from tests.producer.support import (
    DEADLINE_S,
    Listener,
    all_of,
    first,
    listening,
    until,
    until_subscribed,
)

from runlane.journal.partition import Partition
from runlane.journal.server import Server, launch
from runlane.producer import (
    Client,
    Event,
    EventKind,
    ServerUnavailableError,
    ServerUnsuitableError,
    Session,
    Settings,
    UnknownRunError,
)
from runlane.producer.hub import Feed

K = EventKind
OF_THE_QUEUE = (K.RUN_QUEUED, K.ABORT_REQUESTED)


def check_order(events: list[Event]) -> None:
    """Nothing provisional comes after a record of its run that was written later."""
    written: dict[str, int] = {}
    for event in events:
        if not event.committed:
            assert event.revision >= written.get(event.run_id, 0)
        elif event.kind not in OF_THE_QUEUE:
            written[event.run_id] = event.revision


async def carry_out(session: Session, worker: HandWorker, *, runs: int, turns: int) -> int:
    """Carry out runs with streamed text in the session; return its last revision."""
    for _ in range(runs):
        await session.run("one")
        held = await worker.begin()
        for turn in range(1, turns + 1):
            await held.stream(turn, *(f"word {number} " for number in range(5)))
            await held.say(turn, "words")
            await asyncio.sleep(0)
        await held.finish()
    return (await session.status()).revision


async def kill_connections(redis: Redis, seed: int) -> None:
    dice = random.Random(seed)
    while True:
        await redis.client_kill_filter(_type="pubsub")
        await asyncio.sleep(dice.uniform(0, 0.05))


@pytest.fixture
def never_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do without the safety net of asking after a silence."""
    monkeypatch.setattr("runlane.producer.subscription.IDLE_S", 1000)


@pytest.mark.usefixtures("never_idle")
@pytest.mark.parametrize("seed", range(3))
async def test_killed_connections(
    client: Client,
    session: Session,
    worker: HandWorker,
    redis: Redis,
    settings: Settings,
    seed: int,
) -> None:
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(await Client.connect(settings=settings))
        sources = [session.events(), session.events(), other.session("s1").events()]
        listeners = [await stack.enter_async_context(listening(source)) for source in sources]
        killer = asyncio.create_task(kill_connections(redis, seed))
        stack.callback(killer.cancel)
        last = await carry_out(session, worker, runs=40, turns=10)
        for listener in listeners:
            await listener.until_revision(last)
    for listener in listeners:
        assert listener.revisions == list(range(1, last + 1))
        check_order(listener.heard)


async def test_results_under_killed_connections(
    client: Client, worker: HandWorker, redis: Redis
) -> None:
    killer = asyncio.create_task(kill_connections(redis, 0))
    sessions = [client.session(f"s{number}", agent="support") for number in range(50)]
    handles = [await session.run("one") for session in sessions]
    waiting = [asyncio.create_task(handle.result(DEADLINE_S)) for handle in handles]
    following = [asyncio.create_task(all_of(handle.events())) for handle in handles]
    carried_out = 0
    while carried_out < len(handles):
        for lease in await worker.claim():
            await worker.carry_out(lease, lease.run_id)
            carried_out += 1
    for handle, result, events in zip(handles, waiting, following, strict=True):
        assert (await result).output == handle.run_id
        assert [event.revision for event in await events if event.committed] == [1, 2, 3, 4]
    killer.cancel()


@pytest.mark.usefixtures("never_idle")
async def test_a_slow_subscriber_misses_nothing_and_holds_nobody_up(
    session: Session, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runlane.producer.hub.MESSAGES_MAX", 20)
    go_on = asyncio.Event()

    async def pause() -> None:
        await go_on.wait()

    async with (
        listening(session.events()) as fast,
        listening(session.events(), pause=pause) as slow,
    ):
        await until_subscribed(worker.partition, session)
        last = await carry_out(session, worker, runs=5, turns=20)
        await fast.until_revision(last)
        assert len(slow.heard) <= 1
        go_on.set()
        await slow.until_revision(last)
        more = await carry_out(session, worker, runs=1, turns=3)
        await slow.until_revision(more)
    for listener in (fast, slow):
        assert listener.revisions == list(range(1, more + 1))
        check_order(listener.heard)


@dataclass
class Loss:
    """Has listeners miss half of the messages, as long as it goes on."""

    on: bool = True


@pytest.fixture
def loss(monkeypatch: pytest.MonkeyPatch) -> Loss:
    loss = Loss()
    dice = random.Random(7)
    hear = Feed.hear

    def hear_half(feed: Feed, message: bytes) -> None:
        if not loss.on or dice.random() < 0.5:
            hear(feed, message)

    monkeypatch.setattr("runlane.producer.hub.Feed.hear", hear_half)
    return loss


@pytest.mark.usefixtures("never_idle")
async def test_a_later_message_tells_what_was_missed(
    session: Session, worker: HandWorker, loss: Loss
) -> None:
    async with listening(session.events()) as listener:
        await until_subscribed(worker.partition, session)
        last = await carry_out(session, worker, runs=10, turns=10)
        loss.on = False
        await session.run("one")
        await listener.until_revision(last + 1)
    assert listener.revisions == list(range(1, last + 2))
    check_order(listener.heard)


@pytest.mark.usefixtures("loss")
async def test_messages_that_never_come(
    session: Session, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runlane.producer.subscription.IDLE_S", 0.02)
    async with listening(session.events()) as listener:
        await until_subscribed(worker.partition, session)
        last = await carry_out(session, worker, runs=10, turns=10)
        await listener.until_revision(last)
    assert listener.revisions == list(range(1, last + 1))
    check_order(listener.heard)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    with launch(tmp_path / "server", binary=bundled_binary()) as server:
        yield server


@pytest.fixture
async def own_worker(own_server: Server) -> AsyncIterator[HandWorker]:
    partition = Partition(own_server.url, prefix="rl", retry_s=DEADLINE_S)
    await partition.open()
    worker = HandWorker(partition, {"support": "1"})
    await worker.register()
    yield worker
    await partition.close()


@pytest.fixture
async def own_client(own_server: Server, own_worker: HandWorker) -> AsyncIterator[Client]:
    settings = Settings(redis_url=own_server.url, retry_s=0.2)
    async with await Client.connect(settings=settings) as client:
        yield client


async def test_a_server_that_was_away(
    own_server: Server, own_client: Client, own_worker: HandWorker
) -> None:
    session = own_client.session("s1", agent="support")
    handle = await session.run("one")
    waiting = asyncio.create_task(handle.result())
    async with listening(session.events()) as whole, listening(handle.events()) as run:
        held = await own_worker.begin()
        await held.say(1, "before")
        await run.until_kind(K.MESSAGE_COMPLETED)
        own_server.stop()
        with pytest.raises(ServerUnavailableError):
            await waiting
        with pytest.raises(ServerUnavailableError):
            await session.run("two")
        own_server.start()
        await held.say(2, "after")
        await held.finish()
        for listener in (whole, run):
            await listener.until_kind(K.AGENT_FINISHED)
            assert listener.revisions == [1, 2, 3, 4, 5]
        assert (await handle.result(DEADLINE_S)).succeeded


async def test_a_server_that_lost_its_last_records(
    own_server: Server, own_client: Client, tmp_path: Path
) -> None:
    session = own_client.session("s1", agent="support")
    await session.run("kept")
    own_server.stop()
    shutil.copytree(own_server.data_dir, tmp_path / "earlier")
    own_server.start()
    lost = [await session.run("lost") for _ in range(3)]
    of_lost = asyncio.create_task(all_of(lost[0].events()))
    async with listening(session.events()) as listener:
        await listener.until_revision(4)
        own_server.stop()
        shutil.rmtree(own_server.data_dir)
        shutil.copytree(tmp_path / "earlier", own_server.data_dir)
        own_server.start()
        for _ in range(4):
            await session.run("again")
        await listener.until_kind(K.JOURNAL_RESET)
        await listener.until_revision(5)
    with pytest.raises(UnknownRunError, match=lost[0].run_id):
        await of_lost
    before, reset, *after = listener.heard[:4], *listener.heard[4:]
    assert [event.revision for event in before] == [1, 2, 3, 4]
    assert reset.payload == {"lost": before[-1].cursor}
    assert [event.revision for event in after] == [1, 2, 3, 4, 5]
    assert after[0] == before[0]
    assert not {event.cursor for event in after[1:]} & {event.cursor for event in before[1:]}


async def test_a_user_who_may_not_subscribe(
    redis: Redis, redis_url: str, settings: Settings, session: Session
) -> None:
    await session.run("one")
    acl: Any = redis
    await acl.acl_setuser(
        "deaf",
        enabled=True,
        passwords=["+geheim"],
        categories=["+@all"],
        keys=["*"],
        reset_channels=True,
    )
    url = redis_url.replace("redis://", "redis://deaf:geheim@")
    async with await Client.connect(url, settings=settings) as client:
        with pytest.raises(ServerUnsuitableError, match="permission") as refused:
            await first(2, client.session("s1").events())
        assert "geheim" not in str(refused.value)
    await acl.acl_deluser("deaf")


async def test_who_stops_listening_is_not_served_any_more(
    session: Session, worker: HandWorker
) -> None:
    await session.run("one")
    async with listening(session.events()) as one:
        await one.until_kind(K.RUN_QUEUED)
        async with listening(session.events()) as other:
            await other.until_kind(K.RUN_QUEUED)
        await until_subscribed(worker.partition, session)
        await worker.complete()
        await one.until_kind(K.AGENT_FINISHED)
    await until_subscribed(worker.partition, session, count=0)
    async with listening(session.events()) as again:
        await again.until_revision(4)
        await session.run("two")
        await again.until_revision(5)
    assert again.revisions == [1, 2, 3, 4, 5]


async def test_listeners_that_come_and_go(session: Session, worker: HandWorker) -> None:
    """Subscribing, leaving and subscribing again, before the server has confirmed any of it."""
    writer = asyncio.create_task(carry_out(session, worker, runs=20, turns=5))
    dice = random.Random(3)
    found: list[Listener] = []
    while not writer.done():
        async with listening(session.events()) as brief:
            for _ in range(dice.randrange(4)):
                await asyncio.sleep(0)
        async with listening(session.events()) as longer:
            await until(lambda: writer.done() or len(longer.heard) > 20)
        found += [brief, longer]
    await writer
    for listener in found:
        assert listener.revisions == list(range(1, len(listener.revisions) + 1))
        check_order(listener.heard)
