"""How much a worker takes on, and what one greedy tool does to it."""

import asyncio
from collections import Counter

import pytest
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_calls, check_rest
from tests.e2e.waiting import DEADLINE_S, until

from runlane.producer import Client, RunStatus
from runlane.producer.runs import RunState

SLOTS = 300
RUNS = 400


async def test_a_tool_that_holds_up_the_event_loop_does_not_cost_the_lease(
    fleet: Fleet, client: Client
) -> None:
    await fleet.registered(fleet.launch(), fleet.launch())
    seconds = 2.5 * fleet.lease_ms / 1000
    session = client.session("frozen", agent="clerk")
    frozen = await session.run(f'[[tool freeze {{"seconds": {seconds}}}]] [[say done]]')
    beside = await client.session("beside", agent="clerk").run("[[tool pay]]")
    assert (await frozen.result(DEADLINE_S)).output == "done"
    assert (await beside.result(DEADLINE_S)).status is RunStatus.COMPLETED
    assert [execution.attempt for execution in fleet.ledger.all("freeze")] == [1]
    info = await frozen.status()
    assert (info.attempt, info.crashes) == (1, 0)
    check_calls(fleet, [await Story.read(client, "frozen"), await Story.read(client, "beside")])
    await check_rest(fleet)


class TestManySlots:
    @pytest.fixture
    def lease_ms(self) -> int:
        return 10_000

    async def test_all_slots_of_a_worker_are_used_at_once_and_no_more(
        self, fleet: Fleet, client: Client
    ) -> None:
        await fleet.start(max_runs=SLOTS)
        sessions = [client.session(f"s-{number}", agent="clerk") for number in range(RUNS)]
        task = '[[tool hold {"gate": "go"}]] [[say done]]'
        handles = await asyncio.gather(*(session.run(task) for session in sessions))
        await until(lambda: len(fleet.ledger.all("hold")) >= SLOTS, "all slots are in use")
        infos = await asyncio.gather(*(handle.status() for handle in handles))
        states = Counter(info.state for info in infos)
        assert states == {RunState.RUNNING: SLOTS, RunState.QUEUED: RUNS - SLOTS}
        fleet.open("go")
        async with asyncio.timeout(DEADLINE_S):
            results = await asyncio.gather(*handles)
        assert {result.output for result in results} == {"done"}
        assert len(fleet.ledger.all("hold")) == RUNS
        await check_rest(fleet)
