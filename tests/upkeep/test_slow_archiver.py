"""An archiver that is stopped past its lease is refused when it comes back."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from tests.journal.driving import Driver
from tests.producer.support import until
from tests.upkeep import slow_archiver
from tests.upkeep.support import Keeper

from runlane.journal.upkeep import archive_session


class SlowArchiver:
    """A process that archives the one session that is due."""

    def __init__(self, driver: Driver, keeper: Keeper) -> None:
        arguments = (driver.partition.url, driver.prefix, str(keeper.store))
        self.process = subprocess.Popen(
            [sys.executable, slow_archiver.__file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    async def says(self) -> str:
        assert self.process.stdout is not None
        return (await asyncio.to_thread(self.process.stdout.readline)).strip()

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go on\n")
        self.process.stdin.flush()


@pytest.fixture
async def slow(driver: Driver, keeper: Keeper) -> AsyncIterator[SlowArchiver]:
    for _ in range(2):
        await keeper.trace(checkpoint=True)
    archiver = SlowArchiver(driver, keeper)
    with archiver.process:
        yield archiver
        archiver.process.kill()


async def test_a_stopped_archiver_is_refused_when_it_comes_back(
    driver: Driver, keeper: Keeper, slow: SlowArchiver
) -> None:
    records = await driver.records()
    assert await slow.says() == "stored"
    slow.process.send_signal(signal.SIGSTOP)

    async def is_overtaken() -> bool:
        for claim in await keeper.claim(count=1):
            assert keeper.segments() == [(1, 9)]
            assert await archive_session(driver.partition, claim, segment_records=5) == 9
        return len(await keeper.stream()) == 1

    await until(is_overtaken)
    slow.process.send_signal(signal.SIGCONT)
    slow.go_on()
    last_words = await slow.says()
    assert last_words.startswith("fenced: session 's': its archiving moved to 'nobody'")
    assert keeper.segments() == [(1, 5), (6, 9)]
    assert await driver.records() == records
    await driver.check(quiescent=True)


async def test_one_that_is_killed_is_followed_by_another(
    driver: Driver, keeper: Keeper, slow: SlowArchiver
) -> None:
    records = await driver.records()
    assert await slow.says() == "stored"
    slow.process.kill()

    async def is_followed() -> bool:
        for claim in await keeper.claim(count=1):
            await archive_session(driver.partition, claim)
        return len(await keeper.stream()) == 1

    await until(is_followed)
    assert keeper.segments() == [(1, 9)]
    assert await driver.records() == records
