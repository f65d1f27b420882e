"""Blobs are tested on every real server, with and without an archive."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from tests.journal.driving import Driver, open_driver

from runlane.journal.archive import Archive, FileStore
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


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(FileStore(tmp_path / "archive"))
