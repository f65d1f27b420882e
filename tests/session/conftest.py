"""A deployment that is driven by hand, on every real server."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from tests.journal.driving import Driver, open_driver

from runlane.journal.server import Server


@pytest.fixture(scope="session")
def server(any_server: Server) -> Server:
    return any_server


@pytest.fixture
async def driver(redis_url: str, prefix: str, redis: Redis) -> AsyncIterator[Driver]:
    """A deployment that is alone on its server."""
    await redis.flushall()
    async with open_driver(redis_url, prefix=prefix) as opened:
        yield opened
