"""A session of any length stays small in Redis, and no record of it is out of reach."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import pytest
from msgspec.structs import replace
from tests.journal.builders import intent_of, outcome_of, said, started
from tests.journal.driving import Driver
from tests.upkeep.support import Keeper

from runlane.journal import tree
from runlane.journal.checkpoints import CHECKPOINT_RECORDS
from runlane.journal.lease import Lease
from runlane.journal.projection import Projection
from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import AnyBody
from runlane.journal.wire.tree import CompactionApplied, SummaryEntry
from runlane.producer import Client, Settings

RECORDS: Final = 10_000
REDIS_BYTES_MAX: Final = 2 * 1024 * 1024
KEPT_MESSAGES: Final = 20


def turns(lease: Lease) -> Iterator[list[AnyBody]]:
    """Yield the records of one turn after the other, each with 2 KB that no one can compress."""
    turn = 0
    while True:
        turn += 1
        asked = said(lease, turn, calls=["look"])
        answer = outcome_of(asked, 0)
        content = os.urandom(1000).hex()
        message = ToolMessage(tool_call_id="c-look", tool_name="look", content=content)
        yield [asked, intent_of(asked, 0, effect="read_only"), replace(answer, message=message)]


def compacted(projection: Projection) -> list[AnyBody]:
    """Return the records with which an agent keeps its context short, and their checkpoint."""
    kept = tuple(projection.messages[-KEPT_MESSAGES:])
    summary = SummaryEntry(
        content="much happened",
        source="test",
        history_start_index=0,
        first_kept_index=1,
        summarized_message_count=1,
        tokens_before=1,
    )
    applied = CompactionApplied(operation_id="c", summary=summary, messages=kept)
    checkpoint = projection.after([applied]).checkpoint()
    assert checkpoint is not None
    return [applied, checkpoint]


async def size_of(driver: Driver) -> int:
    """Return what all keys of the deployment take, in bytes."""
    names: AsyncIterator[bytes] = cast("Any", driver.redis).scan_iter(count=1000)
    size = 0
    async for name in names:
        size += await driver.partition.call("MEMORY", "USAGE", name, "SAMPLES", 0)
    return size


@pytest.fixture
async def client(driver: Driver, store: Path) -> AsyncIterator[Client]:
    settings = Settings(
        redis_url=driver.partition.url, prefix=driver.prefix, archive=str(store), retry_s=10
    )
    async with await Client.connect(settings=settings) as connected:
        yield connected


@dataclass
class Written:
    """A long run as its writer knows it.

    Attributes:
        bodies: Its records.
        checkouts: Record id of a checkpoint → the contents of the messages there.
        largest: What the deployment took in Redis at most, in bytes.
    """

    bodies: list[AnyBody] = field(default_factory=list[AnyBody])
    checkouts: dict[str, list[str | None]] = field(default_factory=dict[str, list[str | None]])
    largest: int = 0


async def write_long_run(driver: Driver, keeper: Keeper) -> Written:
    """Let a run leave many records, and the upkeep take them away at each checkpoint."""
    lease = await driver.held()
    await driver.begin(lease)
    projection = await driver.project()
    written = Written([started(lease)])
    since = 0
    for turn in turns(lease):
        due = since >= CHECKPOINT_RECORDS
        batch = [*turn, *(compacted(projection.after(turn)) if due else [])]
        for body in batch:
            projection.add(body)
        head = await driver.append(lease, batch)
        written.bodies += batch
        since += len(batch)
        if due:
            since = 0
            written.checkouts[head] = [message.content for message in projection.messages]
            written.largest = max(written.largest, await size_of(driver))
            await keeper.archive()
            assert len(await keeper.stream()) == 1
        if len(written.bodies) >= RECORDS:
            break
    await driver.finish(lease, entries=[said(lease, 1_000_000)])
    return written


async def test_ten_thousand_records_are_written_and_read(
    driver: Driver, keeper: Keeper, client: Client
) -> None:
    early = await keeper.trace(checkpoint=False)
    end = (await driver.run(early.run_id))["end"]
    written = await write_long_run(driver, keeper)
    assert written.largest < REDIS_BYTES_MAX

    session = client.session("s")
    records = [record async for record in session.records()]
    assert [record.revision for record in records] == list(range(1, len(records) + 1))
    assert [record async for record in session.records(newest_first=True)] == records[::-1]
    own = [record.body for record in records if record.branch_id == "main"]
    assert own[3 : 3 + len(written.bodies)] == written.bodies
    for record_id, contents in list(written.checkouts.items())[::8]:
        found = await session.checkout(record_id)
        assert [message.content for message in found.messages] == contents

    side = await session.fork(end, name="side")
    await keeper.trace(branch="side", checkpoint=False)
    assert [message.content for message in await side.messages()] == ["hi", "yo"] * 2

    old = records[1234]
    heard = [record for record in records[1235:] if record.kind != "checkpoint"][:1000]
    async with aclosing(session.events(after=old.record_id)) as events:
        assert [(await anext(events)).cursor for _ in heard] == [each.record_id for each in heard]
    await driver.check(quiescent=True)


async def test_a_fork_of_an_archived_record_pins_nothing(
    driver: Driver, keeper: Keeper, client: Client
) -> None:
    first = await keeper.trace(checkpoint=True)
    for _ in range(3):
        await keeper.trace(checkpoint=True)
    await keeper.archive()
    end = (await driver.run(first.run_id))["end"]
    side = await client.session("s", branch="main").fork(end, name="side")
    await keeper.trace(branch="side", checkpoint=True)
    expected = await side.messages()
    assert [message.content for message in expected] == ["hi", "yo"] * 2
    await keeper.trace(checkpoint=True)
    await keeper.archive()
    head = await tree.read_head(driver.partition, "s", "side")
    assert await keeper.stream() == list(range(int(head.partition("-")[0]), 32))
    assert await side.messages() == expected
