"""Producers submit to a few lanes just when the runs in them end, and nothing else goes on."""

import asyncio
from collections import defaultdict

from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_rest
from tests.e2e.waiting import DEADLINE_S

from runlane.journal.wire.records import RunFinished, RunQueued, RunStarted
from runlane.producer import Client, RunHandle, RunStatus, Settings

LANES = 3
PRODUCERS = 6
ROUNDS = 12


async def test_a_submit_that_races_with_a_finish_strands_no_lane(fleet: Fleet) -> None:
    await fleet.registered(fleet.launch(), fleet.launch())
    settings = Settings(redis_url=fleet.url, prefix=fleet.prefix)
    asked: dict[tuple[int, int], list[RunHandle]] = defaultdict(list)

    async def produce(client: Client, number: int) -> None:
        """Submit in bursts of one, two and three; each next burst comes right at an end."""
        for turn in range(ROUNDS):
            lane = (number + turn) % LANES
            session = client.session(f"lane-{lane}", agent="clerk")
            burst = [await session.run("hi") for _ in range(1 + turn % 3)]
            asked[number, lane] += burst
            assert (await burst[-1]).status is RunStatus.COMPLETED

    clients = [await Client.connect(settings=settings) for _ in range(PRODUCERS)]
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(produce(client, n) for n, client in enumerate(clients)))
    for lane in range(LANES):
        story = await Story.read(clients[0], f"lane-{lane}")
        accepted = [body.run_id for body in story.all(RunQueued)]
        assert [body.run_id for body in story.all(RunStarted)] == accepted
        assert [body.run_id for body in story.all(RunFinished)] == accepted
        for number in range(PRODUCERS):
            own = [handle.run_id for handle in asked[number, lane]]
            assert [run_id for run_id in accepted if run_id in own] == own
    for client in clients:
        await client.close()
    await check_rest(fleet)
