"""A holder that dies loses the lane, and a worker that serves anything lets it go on."""

import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e.harness import environment
from tests.e2e.waiting import until
from tests.journal.driving import Driver

from runlane.journal import holds
from runlane.producer import Client, Session

ROOT = Path(__file__).parents[2]
LEASE_MS = 1000
PROGRAM = """
import asyncio, sys
from runlane.producer import Client
async def main():
    async with await Client.connect() as client, client.session("s").hold():
        print("held", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


@contextmanager
def another_process(driver: Driver) -> Generator["subprocess.Popen[str]"]:
    """A process that holds the lane, or waits for it, until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=environment(
            RUNLANE_REDIS_URL=driver.partition.url,
            RUNLANE_PREFIX=driver.prefix,
            RUNLANE_LEASE_MS=str(LEASE_MS),
        ),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def is_claimed(driver: Driver, run_id: str) -> None:
    async def claimed() -> bool:
        return [run.lease.run_id for run in (await driver.claim()).runs] == [run_id]

    await until(claimed, "a worker gets the run")


async def test_a_lane_goes_on_without_a_holder_that_died(session: Session, driver: Driver) -> None:
    with another_process(driver) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        handle = await session.run("hi")
        assert (await driver.claim()).runs == ()
        holder.kill()
        await is_claimed(driver, handle.run_id)
    await driver.check()


async def test_a_lane_goes_on_past_somebody_who_died_waiting_for_it(
    session: Session, driver: Driver
) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    with another_process(driver) as waiting:

        async def waits() -> bool:
            return len((await driver.waiting())[1]) == 1

        await until(waits, "the other process waits")
        handle = await session.run("hi")
        waiting.kill()
        waiting.wait()
    await driver.finish(lease)
    await is_claimed(driver, handle.run_id)
    await driver.check()


async def test_a_holder_that_stood_still_for_too_long_has_lost_the_lane(
    session: Session, client: Client, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holds, "RECHECK_S", 0.2)
    with another_process(driver) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGSTOP)
        async with session.hold() as held:  # no worker is there: who waits sees to it
            holder.send_signal(signal.SIGCONT)
            assert (await client.status(held.run_id)).state == "running"
    await driver.check(quiescent=True)
