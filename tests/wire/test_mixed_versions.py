"""A journal with records of several versions is one journal, for scripts and readers alike."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis
from tests.journal.builders import said
from tests.journal.driving import Driver, open_driver

from runlane.journal.errors import UndecodableError
from runlane.journal.path import read_path
from runlane.journal.reader import record_of_message
from runlane.journal.server import Server
from runlane.journal.wire import codec
from runlane.journal.wire.records import KINDS
from runlane.journal.wire.versions import Versions

NEWER = ("run_started", "message_appended", "run_finished", "checkpoint")


def unchanged(plain: dict[str, Any]) -> dict[str, Any]:
    return plain


@pytest.fixture(scope="session")
def server(any_server: Server) -> Server:
    return any_server


@pytest.fixture
async def driver(redis_url: str, prefix: str, redis: Redis) -> AsyncIterator[Driver]:
    await redis.flushall()
    async with open_driver(redis_url, prefix=prefix) as opened:
        yield opened


def upgraded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process write another version of what a run consists of."""
    versions = Versions("record kind", KINDS, dict.fromkeys(NEWER, (unchanged,)))
    monkeypatch.setattr(codec, "_bodies", versions)


async def stored(driver: Driver) -> list[str]:
    """Return what the records of the session are stored as."""
    entries = await driver.partition.call("XRANGE", driver.keys.log("s"), "-", "+")
    return [fields[fields.index(b"k") + 1].decode() for _, fields in entries]


async def test_a_run_goes_on_in_another_version(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await driver.completed_with_checkpoint()
    first = await driver.held()
    await driver.begin(first)
    upgraded(monkeypatch)
    await driver.append(first, [said(first, calls=["look"])])
    await driver.finish(first)
    second = await driver.completed_with_checkpoint()
    assert await stored(driver) == [
        *("run_queued", "run_started", "message_appended", "run_finished", "checkpoint"),
        *("run_queued", "run_started", "message_appended@2", "run_finished@2"),
        *("run_queued", "run_started@2", "message_appended@2", "run_finished@2", "checkpoint@2"),
    ]
    records = await driver.records()
    assert [record.kind for record in records[-4:]] == [*NEWER]
    run = await driver.run(second.run_id)
    assert (run["begin"], run["end"]) == (records[-4].record_id, records[-2].record_id)
    assert (await driver.lane())["checkpoint"] == str(records[-1].revision)


async def test_a_path_stops_at_a_checkpoint_of_any_version(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await driver.completed()
    upgraded(monkeypatch)
    await driver.completed_with_checkpoint()
    before = (await driver.project()).messages
    await driver.completed()
    head = driver.heads["s", "main"]
    path = await read_path(driver.partition, "s", head)
    assert [record.kind for record in path.records] == ["checkpoint", "run_started", "run_finished"]
    assert path.project().messages[: len(before)] == before


async def test_subscribers_hear_the_kind_and_not_its_version(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgraded(monkeypatch)
    lease = await driver.held()
    await driver.checkout(lease)
    async with driver.hearing(driver.keys.events("s")) as heard:
        await driver.begin(lease)
        await driver.finish(lease, output="all of it")
    kinds = [record_of_message(message[1:]).kind for message in heard]
    assert kinds == ["run_started", "run_finished"]


async def test_an_older_process_leaves_newer_records_alone(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        upgraded(newer)
        await driver.completed()
    with pytest.raises(UndecodableError, match=r"'run_started@2'.*upgrade this process"):
        await driver.records()
