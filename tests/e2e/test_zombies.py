"""A worker stands still for longer than its lease, and comes back to life."""

import asyncio

from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_calls, check_rest, tapping
from tests.e2e.waiting import DEADLINE_S, until

from runlane.journal.wire.bodies import InAttempt
from runlane.producer import Client, EventKind, RunStatus

TALK = f"[[pace 0.05]] [[say {'blah ' * 30}]]"
HOLD_THEN_PAY = '[[tools hold {"gate": "go"} ; pay]] [[say done]]'


async def test_a_zombie_is_refused_publishes_nothing_and_serves_on(
    fleet: Fleet, client: Client
) -> None:
    zombie = await fleet.start()
    talking, holding = client.session("talk", agent="clerk"), client.session("hold", agent="clerk")
    async with tapping(fleet, "talk") as talk, tapping(fleet, "hold") as hold:
        talk_run, hold_run = await talking.run(TALK), await holding.run(HOLD_THEN_PAY)
        await talk.until(EventKind.ASSISTANT_TEXT_DELTA)
        await until(lambda: len(fleet.ledger.all("hold")) == 1, "the tool has begun")
        zombie.stop()

        heir = await fleet.start()
        result = await talk_run.result(DEADLINE_S)
        await until(lambda: len(fleet.ledger.all("hold")) == 2, "the tool was taken over")
        zombie.resume()
        await until(
            lambda: zombie.logged("lease_lost") + zombie.logged("run_stopped") == 2,
            "the zombie gives both runs up",
        )
        fleet.open("go")
        assert (await hold_run.result(DEADLINE_S)).output == "done"
        assert result.output == ("blah " * 30).strip()
        for heard, run in ((talk, talk_run), (hold, hold_run)):
            await heard.until_ended(run.run_id)
            taken_over = heard.kinds().index(EventKind.SUPERSEDED)
            assert {event.attempt for event in heard.events[taken_over:]} == {2, 0}
    stories = [await Story.read(client, name) for name in ("talk", "hold")]
    for story, heard in zip(stories, (talk, hold), strict=True):
        assert heard.committed == story.events
        bodies = [record.body for record in story.records]
        attempts = [body.attempt for body in bodies if isinstance(body, InAttempt)]
        assert attempts == sorted(attempts)
    check_calls(fleet, stories)
    assert [execution.pid for execution in fleet.ledger.all("pay")] == [heir.pid]

    heir.terminate()
    assert await heir.ended() == 0
    handles = [await client.session(f"next-{n}", agent="clerk").run("hi") for n in range(5)]
    async with asyncio.timeout(DEADLINE_S):
        results = await asyncio.gather(*handles)
    assert {result.status for result in results} == {RunStatus.COMPLETED}
    assert zombie.alive
    await check_rest(fleet)
