"""A client in a deployment of its own, in which a test serves agents."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from tests.checkers.invariants import check_keyspace

from runlane.producer import Client, Session, Settings


@pytest.fixture
def settings(redis_url: str, prefix: str) -> Settings:
    return Settings(redis_url=redis_url, prefix=prefix, retry_s=10)


@pytest.fixture
async def client(settings: Settings, redis: Redis) -> AsyncIterator[Client]:
    async with await Client.connect(settings=settings) as connected:
        yield connected
    await check_keyspace(redis, settings.prefix, quiescent=True)


@pytest.fixture
def session(client: Client) -> Session:
    return client.session("s", agent="support")
