"""A client and a deployment that is driven by hand, on every real server."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from tests.journal.driving import Driver, open_driver

from runlane.journal.server import Server
from runlane.producer import Client, Session, Settings

LEASE_MS = 3000


@pytest.fixture(scope="session")
def server(any_server: Server) -> Server:
    return any_server


@pytest.fixture
async def driver(redis_url: str, prefix: str, redis: Redis) -> AsyncIterator[Driver]:
    """A deployment that is alone on its server."""
    await redis.flushall()
    async with open_driver(redis_url, prefix=prefix) as opened:
        yield opened


@pytest.fixture
async def client(driver: Driver, redis_url: str) -> AsyncIterator[Client]:
    settings = Settings(redis_url=redis_url, prefix=driver.prefix, lease_ms=LEASE_MS, retry_s=10)
    async with await Client.connect(settings=settings) as connected:
        yield connected


@pytest.fixture
async def session(client: Client, driver: Driver) -> Session:
    """A session in which one run has completed."""
    await driver.completed()
    return client.session("s", agent="a")
