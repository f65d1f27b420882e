"""A worker in the process of the test, so that its sinks are at hand."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import cache, partial
from signal import Signals

from tests.producer.support import until

from runlane.journal.partition import Partition
from runlane.journal.settings import Settings
from runlane.worker import Agent, App, RunlaneWorker


async def until_registered(partition: Partition, *, count: int = 1) -> None:
    """Wait until so many workers serve."""

    async def holds() -> bool:
        return bool(await partition.call("ZCARD", partition.keys.workers()) == count)

    await until(holds)


@asynccontextmanager
async def serving(
    agent: Agent, settings: Settings, partition: Partition
) -> AsyncGenerator[Callable[[], None], None]:
    """Serve an agent until the end of the block, or until what it is given is called.

    The block ends once the worker has stopped.
    """
    assert settings.redis_url is not None
    worker = RunlaneWorker(App([agent]), settings.redis_url, settings, handle_signals=False)
    drain = cache(partial(worker.handle_sig, Signals.SIGTERM))  # twice would be a second signal
    task = asyncio.create_task(worker.main())
    try:
        await until_registered(partition)
        yield drain
        drain()
        await task
    finally:
        task.cancel()
        await asyncio.wait([task])
        await worker.close()
