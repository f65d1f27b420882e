"""Workers die in the middle of heavy work."""

import asyncio

from tests.e2e.harness import Fleet, WorkerProcess
from tests.e2e.observing import Story, check_calls, check_rest
from tests.e2e.waiting import DEADLINE_S, until

from runlane.journal.wire.records import RunFinished, RunStarted
from runlane.producer import Client, RunHandle, RunStatus

SESSIONS = 24
WORK = "[[tools look ; pay]] [[tool stamp]] [[tool pay]]"


async def test_killed_workers_lose_nothing_and_lanes_keep_their_order(
    fleet: Fleet, client: Client
) -> None:
    workers = [fleet.launch() for _ in range(3)]
    await fleet.registered(*workers)
    lanes = await asyncio.gather(*(_fill_lane(client, n) for n in range(SESSIONS)))
    first = await client.session("victim-1", agent="clerk").run(_held("one"))
    second = await client.session("victim-2", agent="clerk").run(_held("two"))
    workers.append(fleet.launch())

    await until(lambda: len(fleet.ledger.all("hold")) == SESSIONS + 2, "every lane has begun")
    await _kill_holder(first, workers)
    fleet.open("lanes")
    await until(lambda: len(fleet.ledger.all("pay")) >= SESSIONS, "work is well under way")
    await _taken_over(first)
    await _kill_holder(second, workers)
    fleet.open("one")
    fleet.open("two")

    handles = [handle for lane in lanes for handle in lane] + [first, second]
    async with asyncio.timeout(DEADLINE_S):
        results = await asyncio.gather(*handles)
    assert all(result.status is RunStatus.COMPLETED for result in results)
    stories = [await Story.read(client, f"lane-{n}") for n in range(SESSIONS)]
    for story, lane in zip(stories, lanes, strict=True):
        order = [handle.run_id for handle in lane]
        assert [body.run_id for body in story.all(RunStarted)] == order
        assert [body.run_id for body in story.all(RunFinished)] == order
    check_calls(fleet, stories)
    assert (await first.status()).crashes >= 1
    assert (await second.status()).crashes >= 1
    assert sum(not worker.alive for worker in workers) == 2
    await check_rest(fleet)


def _held(gate: str) -> str:
    return f'[[tool hold {{"gate": "{gate}"}}]] {WORK}'


async def _fill_lane(client: Client, number: int) -> list[RunHandle]:
    """Ask for four runs; return them in the order in which they have to run."""
    session = client.session(f"lane-{number}", agent="clerk")
    first = await session.run(_held("lanes"))
    third = await session.run(WORK)
    second = await session.follow_up(WORK)
    fourth = await session.run(WORK)
    return [first, second, third, fourth]


async def _kill_holder(handle: RunHandle, workers: list[WorkerProcess]) -> None:
    """Kill the worker that executes a run; if that died with an earlier run, the next one."""

    async def is_killed() -> bool:
        info = await handle.status()
        for worker in workers:
            if worker.alive and worker.holds(info.worker):
                worker.kill()
                return True
        return False

    await until(is_killed, f"the worker of run {handle.run_id} is killed")


async def _taken_over(handle: RunHandle) -> None:
    async def is_held_again() -> bool:
        return (await handle.status()).attempt > 1

    await until(is_held_again, f"run {handle.run_id} is taken over")
