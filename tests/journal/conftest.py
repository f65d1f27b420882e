"""The journal is tested on every real server."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from tests.journal.driving import Driver, open_driver

from runlane.journal.server import Server, launch
from runlane.producer import Client, Session, Settings


@pytest.fixture(scope="session")
def server(any_server: Server) -> Server:
    return any_server


@pytest.fixture
def own_server(any_binary: Path, tmp_path: Path) -> Iterator[Server]:
    """A server that the test may stop, or set up as it likes."""
    with launch(tmp_path, binary=any_binary) as running:
        yield running


@pytest.fixture
async def driver(redis_url: str, prefix: str, redis: Redis) -> AsyncIterator[Driver]:
    """A deployment that is alone on its server."""
    await redis.flushall()
    async with open_driver(redis_url, prefix=prefix) as opened:
        yield opened


@pytest.fixture
async def client(driver: Driver) -> AsyncIterator[Client]:
    settings = Settings(redis_url=driver.partition.url, prefix=driver.prefix)
    async with await Client.connect(settings=settings) as connected:
        yield connected


@pytest.fixture
def session(client: Client) -> Session:
    return client.session("s", agent="a")
