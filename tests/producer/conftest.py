"""A client and a worker in a deployment of their own."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from tests.checkers.invariants import check_keyspace
from tests.producer.hand_worker import HandWorker
from tests.producer.shell import Shell

from runlane.journal.partition import Partition
from runlane.producer import Client, Session, Settings


@pytest.fixture
def settings(redis_url: str, prefix: str) -> Settings:
    return Settings(redis_url=redis_url, prefix=prefix, retry_s=10, payload_bytes_max=20_000)


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[Client]:
    async with await Client.connect(settings=settings) as connected:
        yield connected


@pytest.fixture
async def worker(partition: Partition) -> HandWorker:
    worker = HandWorker(partition, {"support": "1", "sales": "2"})
    await worker.register()
    return worker


@pytest.fixture
def session(client: Client, worker: HandWorker) -> Session:
    """A session that does not exist yet, of an agent that is served."""
    return client.session("s1", agent="support")


@pytest.fixture
async def sound(redis: Redis, prefix: str) -> AsyncIterator[None]:
    """Whatever the test does, the keyspace is sound afterwards."""
    yield
    await check_keyspace(redis, prefix, quiescent=False)


@pytest.fixture
async def shell(
    redis_url: str, prefix: str, worker: HandWorker, tmp_path: Path
) -> AsyncIterator[Shell]:
    """The command line in the deployment of the test."""
    shell = Shell(redis_url, prefix, tmp_path)
    yield shell
    await shell.close()


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
