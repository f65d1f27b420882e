"""Stock arq, the peer: its own worker, its own pool, a function that does nothing."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from arq import ArqRedis, create_pool
from arq.connections import RedisSettings
from arq.constants import default_queue_name, result_key_prefix
from arq.worker import Worker, func
from msgspec import Struct

from bench.marks import Marks
from bench.systems.protocol import Work


class StockArq(Struct, frozen=True, kw_only=True, tag="arq"):
    """Stock arq; these are its own defaults."""

    poll_delay_s: float = 0.5
    job_timeout_s: float = 300

    def serve(self, work: Work) -> None:
        """Execute jobs; informational logs are off, results are kept."""
        logging.disable(logging.INFO)
        marks = Marks(Path(work.marks))

        async def job(ctx: dict[Any, Any], number: int) -> str:
            marks.write(number)
            if work.hang:
                await asyncio.Event().wait()
            return "ok"

        async def on_startup(ctx: dict[Any, Any]) -> None:
            await marks.line_up()

        Worker(
            functions=[func(job, name="job")],
            redis_settings=RedisSettings.from_dsn(work.url),
            max_jobs=work.slots,
            poll_delay=self.poll_delay_s,
            job_timeout=self.job_timeout_s,
            on_startup=on_startup,
        ).run()

    @asynccontextmanager
    async def connect(self, url: str) -> AsyncGenerator["ArqProducer"]:
        """Connect through arq's own pool."""
        pool = await create_pool(RedisSettings.from_dsn(url))
        try:
            yield ArqProducer(pool)
        finally:
            await pool.aclose()


class ArqProducer:
    """Asks for jobs as arq's documentation does."""

    def __init__(self, pool: ArqRedis) -> None:
        self._pool = pool

    async def enqueue(self, number: int) -> None:
        """Ask for one job."""
        await self._pool.enqueue_job("job", number)

    async def unfinished(self) -> int:
        """Return the number of jobs in the queue; a job leaves it when it ends."""
        count: int = await self._pool.zcard(default_queue_name)
        return count

    async def ended(self) -> int:
        """Return the number of stored results."""
        pool: Any = self._pool  # untyped in redis-py
        return len([key async for key in pool.scan_iter(f"{result_key_prefix}*", 1000)])
