"""A side effect that no replica knows of is not begun."""

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest
from tests.durability.replicas import asking, stopped
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story
from tests.e2e.waiting import until

from runlane.journal.server import Server
from runlane.journal.wire.records import ToolOutcome, ToolStarted
from runlane.producer import Client, RunHandle, RunStatus, Settings
from runlane.worker.testing.process import scripted_model


@pytest.fixture(scope="module")
def model() -> Iterator[Mapping[str, str]]:
    with scripted_model() as environment:
        yield environment


@pytest.fixture
def fleet(
    trio: list[Server], prefix: str, model: Mapping[str, str], tmp_path: Path
) -> Iterator[Fleet]:
    with Fleet(trio[0].url, prefix, tmp_path, model) as fleet:
        yield fleet


@pytest.fixture
async def client(fleet: Fleet) -> AsyncIterator[Client]:
    settings = Settings(redis_url=fleet.url, prefix=fleet.prefix, durability="ha-acked")
    async with await Client.connect(settings=settings) as client:
        yield client


async def test_a_tool_waits_until_its_intent_is_confirmed_and_is_called_once(
    trio: list[Server], fleet: Fleet, client: Client
) -> None:
    """However long that takes: the lease is kept, and no crash is counted."""
    await fleet.start(durability="ha-acked")
    handle = await held_before_the_payment(fleet, client)
    with stopped(trio[1]), stopped(trio[2]), asking(trio[0].port) as redis:
        fleet.open("open")
        await until_intended(client)
        began_s, _ = redis.time()
        await until(lambda: redis.time()[0] > began_s + 3 * fleet.lease_ms / 1000, "time passes")
        assert fleet.ledger.all("pay") == []
    result = await handle.result(timeout=60)
    status = await handle.status()
    assert (result.status, status.crashes) == (RunStatus.COMPLETED, 0)
    story = await Story.read(client, "s")
    assert outcome_of_payment(story, handle.run_id) is ToolOutcome.OK
    assert len(fleet.ledger.all("pay")) == 1


async def test_a_worker_that_dies_with_an_unconfirmed_intent_has_not_called_the_tool(
    trio: list[Server], fleet: Fleet, client: Client
) -> None:
    worker = await fleet.start(durability="ha-acked")
    handle = await held_before_the_payment(fleet, client)
    with stopped(trio[1]), stopped(trio[2]):
        fleet.open("open")
        await until_intended(client)
        worker.kill()
        await worker.ended()
    await fleet.start(durability="ha-acked")
    await handle.result(timeout=60)
    story = await Story.read(client, "s")
    assert outcome_of_payment(story, handle.run_id) is ToolOutcome.UNKNOWN
    assert fleet.ledger.all("pay") == []


async def held_before_the_payment(fleet: Fleet, client: Client) -> RunHandle:
    session = client.session("s", agent="clerk")
    handle = await session.run('[[tools hold {"gate": "open"} ; pay]]')
    await until(lambda: len(fleet.ledger.all("hold")) > 0, "the tool before it waits")
    return handle


async def until_intended(client: Client) -> None:
    async def is_intended() -> bool:
        story = await Story.read(client, "s")
        return [body.index for body in story.all(ToolStarted)] == [0, 1]

    await until(is_intended, "the master has the intent to pay")


def outcome_of_payment(story: Story, run_id: str) -> ToolOutcome:
    return story.results(run_id)[1, 1].outcome
