"""An operator takes a run away from its worker: another one carries it on, whatever the clock."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.e2e.harness import Fleet
from tests.e2e.observing import Heard, Story, check_calls, check_rest, tapping
from tests.e2e.waiting import DEADLINE_S, until

from runlane.journal.wire.bodies import InAttempt
from runlane.journal.wire.records import AttemptCause, AttemptStarted, LeaseStolen
from runlane.producer import Client, EventKind, RunHandle, RunState, RunStatus

RUNS = 10
TALK = f"[[pace 0.05]] [[say {'blah ' * 60}]]"


@pytest.fixture
def lease_ms() -> int:
    """The longest there is: no lease ends, and none is renewed, within a test."""
    return 600_000


async def test_nothing_that_a_stopped_worker_sends_afterwards_is_accepted_or_heard(
    fleet: Fleet, client: Client
) -> None:
    zombie = await fleet.start()
    sessions = [client.session(f"s{number}", agent="clerk") for number in range(RUNS)]
    handles = [await session.run(TALK) for session in sessions]
    async with tapping(fleet, "s0") as heard, asyncio.timeout(DEADLINE_S):
        await heard.until(EventKind.ASSISTANT_TEXT_DELTA)
        await until(lambda: all_begun(client, handles), "every run has begun")
        zombie.stop()
        heir = await fleet.start()
        receipts = [await session.steal("it hangs") for session in sessions]
        assert [receipt.accepted for receipt in receipts] == [True] * RUNS
        results = await asyncio.gather(*handles)
        assert {result.status for result in results} == {RunStatus.COMPLETED}
        said = [await end_of(client, session.session_id) for session in sessions]

        zombie.resume()
        await until(
            lambda: zombie.logged("lease_lost") + zombie.logged("run_stopped") == RUNS,
            "the zombie gives all runs up",
        )
        after = client.session("s0", agent="clerk")
        assert (await (await after.run("hi")).result(DEADLINE_S)).succeeded
        await heard.until(EventKind.RUN_QUEUED)
        check_silence(heard, handles[0].run_id)
    for session, end in zip(sessions[1:], said[1:], strict=True):
        assert await end_of(client, session.session_id) == end
    for session, handle in zip(sessions, handles, strict=True):
        story = await Story.read(client, session.session_id)
        assert [body.reason for body in story.all(LeaseStolen)] == ["it hangs"]
        assert [body.cause for body in story.all(AttemptStarted)] == [AttemptCause.STOLEN]
        bodies = [record.body for record in story.records]
        attempts = [
            body.attempt
            for body in bodies
            if isinstance(body, InAttempt) and body.run_id == handle.run_id
        ]
        assert attempts == sorted(attempts)
        assert (await client.status(handle.run_id)).crashes == 0
    assert zombie.alive
    assert heir.alive
    await check_rest(fleet)


async def all_begun(client: Client, handles: Sequence[RunHandle]) -> bool:
    states = [(await client.status(handle.run_id)).state for handle in handles]
    return set(states) == {RunState.RUNNING}


async def end_of(client: Client, session_id: str) -> str:
    return (await Story.read(client, session_id)).records[-1].record_id


def check_silence(heard: Heard, run_id: str) -> None:
    """Nothing of the first attempt is heard once the second has begun."""
    taken_over = heard.kinds().index(EventKind.SUPERSEDED)
    attempts = {e.attempt for e in heard.events[taken_over:] if e.run_id == run_id}
    assert attempts == {2, 0}


async def test_a_worker_that_still_lives_is_told_and_stops(fleet: Fleet, client: Client) -> None:
    slow = await fleet.start()
    session = client.session("s", agent="clerk")
    handle = await session.run('[[tools hold_and_pay {"gate": "go"} ; pay]] [[say done]]')
    await until(lambda: len(fleet.ledger.all("hold_and_pay")) == 1, "the tool has begun")
    slow.stop()  # so that the other one takes it
    heir = await fleet.start()
    assert (await session.steal()).accepted
    assert (await handle.result(DEADLINE_S)).output == "done"
    slow.resume()
    await slow.until_logged("run_stopped")
    assert [execution.pid for execution in fleet.ledger.all("pay")] == [heir.pid]
    check_calls(fleet, [await Story.read(client, "s")])
    await check_rest(fleet)


async def test_the_worker_itself_may_take_the_run_over(fleet: Fleet, client: Client) -> None:
    only = await fleet.start()
    session = client.session("s", agent="clerk")
    handle = await session.run('[[tool hold {"gate": "go"}]] [[say done]]')
    await until(lambda: len(fleet.ledger.all("hold")) == 1, "the tool has begun")
    assert (await session.steal()).accepted
    await until(lambda: len(fleet.ledger.all("hold")) == 2, "the tool has begun again")
    await only.until_logged("run_stopped")
    fleet.open("go")
    assert (await handle.result(DEADLINE_S)).output == "done"
    assert [execution.attempt for execution in fleet.ledger.all("hold")] == [1, 2]
    await check_rest(fleet)


async def test_a_thread_that_nobody_can_stop_does_not_keep_the_lane(
    fleet: Fleet, client: Client
) -> None:
    stuck = await fleet.start()
    session = client.session("s", agent="clerk")
    handle = await session.run('[[tool hold_thread {"gate": "go"}]] [[say done]]')
    await until(lambda: len(fleet.ledger.all("hold_thread")) == 1, "the tool has begun")
    stuck.stop()
    await fleet.start()
    assert (await session.steal()).accepted
    await until(lambda: len(fleet.ledger.all("hold_thread")) == 2, "it has begun elsewhere")
    fleet.open("go")
    assert (await handle.result(DEADLINE_S)).output == "done"
    stuck.resume()
    await stuck.until_logged("run_stopped")
    await check_rest(fleet)
