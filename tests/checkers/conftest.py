"""A deployment to damage."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from tests.journal.driving import Driver, open_driver


@pytest.fixture
async def driver(redis_url: str, prefix: str, redis: Redis) -> AsyncIterator[Driver]:
    await redis.flushall()
    async with open_driver(redis_url, prefix=prefix) as opened:
        yield opened
