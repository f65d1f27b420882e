"""The Redis server dies, stays away, and comes back with its append-only file."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any, cast

import pytest
from redis.asyncio import Redis
from tests.conftest import bundled_binary
from tests.e2e.harness import Fleet, WorkerProcess
from tests.e2e.observing import Heard, Story, check_calls, check_rest, hearing
from tests.e2e.waiting import DEADLINE_S, until

from runlane.journal.server import Server, launch
from runlane.producer import Client, RunHandle, RunStatus, ServerUnsuitableError, UnknownAgentError
from runlane.worker.runner.signals import WakeUps

WORK = '[[tool pay]] [[tool hold {"gate": "go"}]] [[tools look ; pay]] [[say done]]'
BUSY = 8


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of this module's own, since it is killed."""
    with launch(tmp_path_factory.mktemp("mortal"), binary=bundled_binary()) as running:
        yield running


async def kill(server: Server) -> None:
    pid = server.pid
    os.kill(pid, signal.SIGKILL)
    # It is a zombie process until `start` waits for it, so ask whether its port still answers.

    async def is_gone() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        except OSError:
            return True
        writer.close()
        return False

    await until(is_gone, "the server is dead")


@dataclass
class Load:
    """Runs that are under way, with somebody who waits for each and somebody who listens."""

    handles: list[RunHandle]
    heard: list[Heard]

    async def check(self, fleet: Fleet, client: Client) -> None:
        """Check that everything has come to its good end."""
        async with asyncio.timeout(DEADLINE_S):
            results = await asyncio.gather(*self.handles)
        assert {result.status for result in results} == {RunStatus.COMPLETED}
        for handle, heard in zip(self.handles, self.heard, strict=True):
            await heard.until_ended(handle.run_id)
            story = await Story.read(client, handle.session_id)
            assert heard.committed == story.events
            check_calls(fleet, [story])
            assert len(fleet.ledger.all("hold", session=handle.session_id)) >= 1
        await check_rest(fleet)


@pytest.fixture
async def load(fleet: Fleet, client: Client) -> AsyncIterator[Load]:
    """Begun once workers serve; every run of it then waits in a tool."""
    await fleet.registered(fleet.launch(), fleet.launch())
    load = Load([], [])
    async with AsyncExitStack() as stack:
        for number in range(BUSY):
            session = client.session(f"s-{number}", agent="clerk")
            load.heard.append(await stack.enter_async_context(hearing(fleet, session)))
            load.handles.append(await session.run(WORK))
        waiting = [asyncio.create_task(handle.result()) for handle in load.handles]
        await until(lambda: len(fleet.ledger.all("hold")) == BUSY, "every run is in its tool")
        yield load
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(*waiting)


class TestAnOutageShorterThanTheLease:
    @pytest.fixture
    def lease_ms(self) -> int:
        return 12_000

    async def test_goes_by_without_a_crash(
        self, server: Server, fleet: Fleet, client: Client, load: Load
    ) -> None:
        await kill(server)
        fleet.open("go")
        asked = asyncio.create_task(client.session("late", agent="clerk").run("hi"))
        for worker in fleet.workers:
            await worker.until_logged("renewal_failed")
        server.start()
        assert (await (await asked).result(DEADLINE_S)).status is RunStatus.COMPLETED
        await load.check(fleet, client)
        for handle in load.handles:
            assert (await handle.status()).attempt == 1


async def test_an_outage_longer_than_the_lease_ends_in_a_takeover(
    server: Server, fleet: Fleet, client: Client, load: Load
) -> None:
    await kill(server)
    asked = asyncio.create_task(client.session("late", agent="clerk").run("hi"))
    await until(lambda: _given_up(fleet.workers) == BUSY, "every run is given up")
    fleet.open("go")
    server.start()
    assert (await (await asked).result(DEADLINE_S)).status is RunStatus.COMPLETED
    await load.check(fleet, client)
    assert all(worker.alive for worker in fleet.workers)


async def test_a_server_that_hangs_for_longer_than_the_lease_ends_in_a_takeover(
    server: Server, fleet: Fleet, client: Client, load: Load
) -> None:
    os.kill(server.pid, signal.SIGSTOP)
    try:
        await until(lambda: _given_up(fleet.workers) == BUSY, "every run is given up")
    finally:
        os.kill(server.pid, signal.SIGCONT)
    fleet.open("go")
    await load.check(fleet, client)


async def test_a_server_that_has_lost_everything_is_served_again(
    fleet: Fleet, client: Client, redis: Redis
) -> None:
    worker = await fleet.start()
    await cast("Any", redis).flushall()
    await fleet.registered(worker)

    async def is_accepted() -> bool:
        with suppress(UnknownAgentError):
            handle = await client.session("s", agent="clerk").run("hi")
            assert (await handle.result(DEADLINE_S)).status is RunStatus.COMPLETED
            return True
        return False

    await until(is_accepted, "the agent is known again")
    await check_rest(fleet)


async def test_a_run_that_waited_out_an_outage_is_not_counted_as_crashed(
    server: Server, fleet: Fleet, client: Client
) -> None:
    worker = await fleet.start(max_runs=1)
    first = await client.session("s-1", agent="clerk").run('[[tool hold {"gate": "go"}]]')
    await until(lambda: bool(fleet.ledger.all("hold")), "the worker is busy")
    second = await client.session("s-2", agent="clerk").run("hi")
    await kill(server)
    await until(lambda: _given_up([worker]) == 1, "the run is given up, and another one claimed")
    ends_at = time.monotonic() + 2 * fleet.lease_ms / 1000
    await until(lambda: time.monotonic() > ends_at, "the claim is on its way for two leases")
    server.start()
    fleet.open("go")
    for handle in (first, second):
        assert (await handle.result(DEADLINE_S)).status is RunStatus.COMPLETED
    assert (await first.status()).crashes == 1
    assert (await second.status()).crashes == 0
    await check_rest(fleet)


async def test_a_worker_that_starts_during_an_outage_waits_and_then_serves(
    server: Server, fleet: Fleet, client: Client
) -> None:
    await kill(server)
    worker = fleet.launch()
    await worker.until_logged("waiting_for_redis")
    server.start()
    await fleet.registered(worker)
    handle = await client.session("s", agent="clerk").run("hi")
    assert (await handle.result(DEADLINE_S)).status is RunStatus.COMPLETED
    await check_rest(fleet)


async def test_a_worker_hears_a_signal_while_it_waits_for_the_server(
    server: Server, fleet: Fleet, client: Client
) -> None:
    serving = await fleet.start()
    await kill(server)
    waiting = fleet.launch()
    await waiting.until_logged("waiting_for_redis")
    await serving.until_logged("renewal_failed")
    try:
        for worker in (waiting, serving):
            worker.terminate()
        assert await waiting.ended() == 0
        assert await serving.ended() == 0
    finally:
        server.start()


async def test_runs_outlast_a_server_that_is_full_for_a_while(
    fleet: Fleet, client: Client, redis: Redis, load: Load
) -> None:
    config = cast("Any", redis).config_set
    await config("maxmemory", "1")
    try:
        fleet.open("go")
        for worker in fleet.workers:
            await worker.until_logged("claim_failed")
            await worker.until_logged("lease_lost")
        with pytest.raises(ServerUnsuitableError, match="full"):
            await client.session("late", agent="clerk").run("hi")
    finally:
        await config("maxmemory", "0")
    await load.check(fleet, client)


@pytest.mark.parametrize("fault", ["away", "full"])
async def test_a_wake_up_that_cannot_be_passed_on_is_dropped(
    server: Server, fleet: Fleet, redis: Redis, fault: str
) -> None:
    tokens = fleet.keys.wake("clerk")
    wake_ups = WakeUps(server.url, [tokens])
    slot, stop = (asyncio.create_task(asyncio.Event().wait()) for _ in range(2))
    await wake_ups.wait(0, stop)
    await cast("Any", redis).lpush(tokens, "1")

    async def is_taken() -> bool:
        return not await cast("Any", redis).exists(tokens)

    await until(is_taken, "the token is taken")
    if fault == "full":
        await cast("Any", redis).config_set("maxmemory", "1")
    else:
        await kill(server)
    try:
        waiting = asyncio.create_task(wake_ups.wait_for_slot(slot, stop))
        await asyncio.wait([waiting], timeout=0.1)
        slot.cancel()
        async with asyncio.timeout(DEADLINE_S):
            await waiting
    finally:
        if fault == "full":
            await cast("Any", redis).config_set("maxmemory", "0")
        else:
            server.start()
        stop.cancel()
        await wake_ups.close()


def _given_up(workers: list[WorkerProcess]) -> int:
    return sum(worker.logged("lease_lost") + worker.logged("run_stopped") for worker in workers)
