"""A failover loses records that the server had acknowledged: the worker notices."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from tests.e2e.failover import Failover, failover
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_rest
from tests.e2e.waiting import DEADLINE_S, until

from runlane.journal.wire.tree import BranchIntent
from runlane.producer import Client, RunStatus, StopReason

TWO_HOLDS = '[[tool hold {"gate": "one"}]] [[tool hold {"gate": "two"}]] [[say done]]'
HELD_MS = 60_000
"""No lease ends within a test, unless it is to."""


@pytest.fixture
async def servers(any_binary: Path, tmp_path: Path) -> AsyncIterator[Failover]:
    async with failover(tmp_path, any_binary) as pair:
        yield pair


@pytest.fixture
def lease_ms() -> int:
    return HELD_MS


@pytest.fixture
async def fleet(
    servers: Failover, prefix: str, model: Mapping[str, str], tmp_path: Path, lease_ms: int
) -> AsyncIterator[Fleet]:
    with Fleet(servers.address.url, prefix, tmp_path, model, lease_ms) as opened:
        yield opened


async def get_ahead_of_the_replica(servers: Failover, fleet: Fleet) -> None:
    """Let the worker get from the first tool to the second, of which the replica hears nothing."""
    await until(lambda: len(fleet.ledger.all("hold")) == 1, "the first tool has begun")
    servers.cut()
    fleet.open("one")
    await until(lambda: len(fleet.ledger.all("hold")) == 2, "the second tool has begun")


async def test_a_worker_that_holds_the_lane_appends_what_was_lost_again(
    servers: Failover, fleet: Fleet, client: Client
) -> None:
    worker = await fleet.start()
    session = client.session("s", agent="clerk")
    handle = await session.run(TWO_HOLDS)
    await get_ahead_of_the_replica(servers, fleet)
    before = await Story.read(client, "s")
    servers.promote()
    fleet.open("two")
    assert (await handle.result(DEADLINE_S)).output == "done"

    assert worker.logged("suffix_appended_again") == 1
    after = await Story.read(client, "s")
    assert [record.body for record in before.records] == [
        record.body for record in after.records[: len(before.records)]
    ]
    hashes = [record.record_id.partition(".")[2] for record in before.records]
    assert hashes == [record.record_id.partition(".")[2] for record in after.records[: len(hashes)]]
    lost = [old for old, new in zip(before.records, after.records, strict=False) if old != new]
    assert [type(record.body).__name__ for record in lost] == [
        "ToolCompleted",
        "MessageAppended",
        "ToolStarted",
    ]
    assert [branch.branch_id for branch in await session.list_branches()] == ["main"]
    await check_rest(fleet)


async def test_a_run_that_the_server_lost_altogether_is_kept_as_a_branch(
    servers: Failover, fleet: Fleet, client: Client
) -> None:
    worker = await fleet.start()
    session = client.session("s", agent="clerk")
    assert (await (await session.run("hi")).result(DEADLINE_S)).status is RunStatus.COMPLETED
    servers.cut()
    handle = await session.run('[[tools pay ; hold {"gate": "one"}]] [[say done]]')
    await until(lambda: len(fleet.ledger.all("hold")) == 1, "the second tool has begun")
    before = await Story.read(client, "s")
    servers.promote()
    surviving = await session.head()
    fleet.open("one")
    await worker.until_logged("lease_lost")

    assert worker.logged("suffix_kept_aside") == 1
    main, lost = await session.list_branches()
    assert main.head_id == surviving
    assert (lost.intent, lost.source_branch_id) == (BranchIntent.LOST, "main")
    assert lost.base_id == surviving
    assert lost.branch_id == f"lost-main-{before.records[-1].inc}"
    for text in (lost.branch_id, surviving or "", before.records[-1].record_id):
        assert text in worker.text
    kept = client.session("s", branch=lost.branch_id)
    story = await Story.read(client, "s")
    bodies = [r.body for r in story.records if r.branch_id == lost.branch_id]
    assert bodies[1:-1] == [r.body for r in before.records if r.branch_id == "main"][-5:]
    checkout = await kept.checkout()
    assert checkout.open_run is None
    assert checkout.last_run is not None
    assert checkout.last_run.run_id == handle.run_id
    assert checkout.last_run.stop_reason is StopReason.WORKER_LOST
    for each in (session, kept):
        result = await (await each.run("[[say still here]]")).result(DEADLINE_S)
        assert result.output == "still here"
    await check_rest(fleet)


async def test_a_session_that_the_server_lost_altogether_is_kept_too(
    servers: Failover, fleet: Fleet, client: Client
) -> None:
    worker = await fleet.start()
    servers.cut()
    session = client.session("s", agent="clerk")
    await session.run('[[tools pay ; hold {"gate": "one"}]] [[say done]]')
    await until(lambda: len(fleet.ledger.all("hold")) == 1, "the second tool has begun")
    servers.promote()
    fleet.open("one")
    await worker.until_logged("lease_lost")
    main, lost = await session.list_branches()
    assert (main.head_id, lost.base_id) == (None, None)
    kept = await client.session("s", branch=lost.branch_id).messages()
    assert any(message.content == "paid 1" for message in kept)
    assert (await (await session.run("hi")).result(DEADLINE_S)).status is RunStatus.COMPLETED
    await check_rest(fleet)


async def test_a_run_that_goes_on_elsewhere_ends_once_and_what_was_lost_stays_beside_it(
    servers: Failover, fleet: Fleet, client: Client
) -> None:
    loser = await fleet.start()
    session = client.session("s", agent="clerk")
    handle = await session.run(TWO_HOLDS)
    await get_ahead_of_the_replica(servers, fleet)
    servers.promote()
    heir = await fleet.start()
    loser.stop()
    assert (await session.steal()).accepted
    await until(
        lambda: any(heir.pid == each.pid for each in fleet.ledger.all("hold")), "it goes on"
    )
    loser.resume()
    await loser.until_logged("suffix_kept_aside")
    fleet.open("two")
    assert (await handle.result(DEADLINE_S)).output == "done"
    lost = next(
        each.branch_id for each in await session.list_branches() if each.intent is BranchIntent.LOST
    )
    events = [event async for event in handle.events()]
    assert {event.branch_id for event in events} == {"main"}
    assert [event.terminal for event in events].count(True) == 1
    story = await Story.read(client, "s")
    assert {e.branch_id for e in story.events if e.terminal} == {"main", lost}
    assert (await client.session("s", branch=lost).checkout()).open_run is None
    await check_rest(fleet)


async def test_a_worker_that_hands_a_run_back_gives_what_was_lost_with_it(
    servers: Failover, fleet: Fleet, client: Client
) -> None:
    leaving = await fleet.start(drain_timeout_s=0)
    session = client.session("s", agent="clerk")
    handle = await session.run(TWO_HOLDS)
    await get_ahead_of_the_replica(servers, fleet)
    servers.promote()
    leaving.terminate()
    assert await leaving.ended() == 0
    assert leaving.logged("suffix_appended_again") == 1
    await fleet.start()
    fleet.open("two")
    assert (await handle.result(DEADLINE_S)).output == "done"
    assert len(fleet.ledger.all("hold")) == 3, "the first tool was not run again"
    await check_rest(fleet)
