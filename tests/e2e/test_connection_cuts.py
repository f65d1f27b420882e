"""The server keeps cutting connections, of workers and clients alike, and forgets its scripts."""

import asyncio
from typing import Any, cast

import pytest
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_calls, check_rest, hearing
from tests.e2e.waiting import DEADLINE_S, until

from runlane.journal.link import client_for
from runlane.producer import Client, RunHandle, RunStatus

SESSIONS = 40
RUNS_EACH = 5
CUTS_MAX = 40
WORK = "[[tools look ; pay]] [[say done]]"


@pytest.fixture
def lease_ms() -> int:
    return 6000


async def test_all_runs_complete_once_however_often_connections_are_cut(
    fleet: Fleet, client: Client
) -> None:
    await fleet.registered(fleet.launch(), fleet.launch())
    lanes = [client.session(f"s-{number}", agent="clerk") for number in range(SESSIONS)]
    ended: list[RunHandle] = []
    async with hearing(fleet, lanes[0]) as heard:

        async def produce(number: int) -> None:
            for _ in range(RUNS_EACH):
                handle = await lanes[number].run(WORK)
                assert (await handle).status is RunStatus.COMPLETED
                ended.append(handle)

        producers = [asyncio.create_task(produce(number)) for number in range(SESSIONS)]
        await _cut(fleet, ended, SESSIONS * RUNS_EACH)
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(*producers)
        for handle in ended:
            assert (await handle.status()).attempt == 1
            if handle.session_id == lanes[0].session_id:
                await heard.until_ended(handle.run_id)
    stories = [await Story.read(client, lane.session_id) for lane in lanes]
    assert heard.committed == stories[0].events
    check_calls(fleet, stories)
    assert len(fleet.ledger.all("pay")) == SESSIONS * RUNS_EACH
    await check_rest(fleet)


async def _cut(fleet: Fleet, ended: list[RunHandle], total: int) -> None:
    """Cut all connections and forget all scripts, again and again as runs end in between."""
    async with client_for(fleet.url) as redis:
        for cut in range(CUTS_MAX):
            for kind in ("normal", "pubsub"):
                await cast("Any", redis).execute_command("CLIENT", "KILL", "TYPE", kind)
            await cast("Any", redis).execute_command("SCRIPT", "FLUSH")
            await _ended(ended, total * (cut + 1) // (CUTS_MAX + 1))


async def _ended(ended: list[RunHandle], count: int) -> None:
    await until(lambda: len(ended) >= count, f"{count} runs have ended")
