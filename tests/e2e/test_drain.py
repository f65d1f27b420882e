"""A worker is told to stop."""

from typing import Any, cast

from redis.asyncio import Redis
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_calls, check_rest, hearing
from tests.e2e.waiting import DEADLINE_S, until

from runlane.journal.wire.records import AttemptCause, AttemptStarted
from runlane.producer import Client, EventKind, RunHandle, RunInfo
from runlane.producer.runs import RunState


async def test_a_run_is_handed_back_at_its_turn_boundary_and_completed_elsewhere(
    fleet: Fleet, client: Client, redis: Redis
) -> None:
    worker = await fleet.start()
    session = client.session("s", agent="clerk")
    async with hearing(fleet, session) as heard:
        handle = await session.run(
            '[[tool pay]] [[tools hold {"gate": "go"} ; pay]] [[tool look]] [[say done]]'
        )
        await until(lambda: bool(fleet.ledger.all("hold")), "the run is in its second turn")
        worker.terminate()
        await worker.until_logged("worker_drains")
        fleet.open("go")
        assert await worker.ended() == 0
        _check_handed_back(await handle.status())
        assert len(fleet.ledger.all("pay")) == 2, "the turn was finished first"
        assert await cast("Any", redis).zcard(fleet.keys.workers()) == 0, "it has left"

        await fleet.start()
        assert (await handle.result(DEADLINE_S)).output == "done"
        await heard.until_ended(handle.run_id)
    story = await Story.read(client, "s")
    assert heard.committed == story.events
    assert [body.cause for body in story.all(AttemptStarted)] == [AttemptCause.HAND_BACK]
    executed = [(e.tool, e.attempt) for e in fleet.ledger.all()]
    assert executed == [("pay", 1), ("hold", 1), ("pay", 1), ("look", 2)]
    assert (await handle.status()).crashes == 0
    await check_rest(fleet)


async def test_a_second_signal_stops_at_once(fleet: Fleet, client: Client) -> None:
    tools = ("hold", "hold_and_pay", "hold_thread")
    workers = [fleet.launch(tool) for tool in tools]
    await fleet.registered(*workers)
    handles = [
        await client.session(f"s-{tool}", agent=tool).run(f'[[tool {tool} {{"gate": "never"}}]]')
        for tool in tools
    ]
    await until(lambda: len(fleet.ledger.all()) == len(tools), "every tool has begun")
    for worker in workers:
        worker.terminate()
        await worker.until_logged("worker_drains")
    assert all(worker.alive for worker in workers), "the first signal stops no turn"
    for worker in workers:
        worker.terminate()
    for worker, handle in zip(workers, handles, strict=True):
        assert await worker.ended() == 0
        _check_handed_back(await handle.status())
    for handle in handles:
        await _end(handle, fleet, client)
    await check_rest(fleet)


async def test_a_model_that_says_nothing_is_left_after_the_drain_timeout(
    fleet: Fleet, client: Client
) -> None:
    worker = await fleet.start(drain_timeout_s=0.5)
    session = client.session("s", agent="clerk")
    async with hearing(fleet, session) as heard:
        handle = await session.run("[[tool pay]] [[fault hang]]")
        await until(lambda: heard.kinds().count(EventKind.TURN_STARTED) == 2, "the model is asked")
        worker.terminate()
        assert await worker.ended() == 0
    _check_handed_back(await handle.status())
    await _end(handle, fleet, client)
    await check_rest(fleet)


def _check_handed_back(info: RunInfo) -> None:
    assert info.state in (RunState.QUEUED, RunState.PENDING_VERSION)
    assert (info.attempt, info.crashes, info.worker) == (1, 0, None)


async def _end(handle: RunHandle, fleet: Fleet, client: Client) -> None:
    assert (await handle.abort()).accepted
    assert (await handle.result(DEADLINE_S)).stop_reason == "external_abort"
    check_calls(fleet, [await Story.read(client, handle.session_id)])
