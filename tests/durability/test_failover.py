"""A master dies, or is demoted: everybody goes on at the new one, and nothing is lost."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from tests.durability.load import Load, lost
from tests.durability.replicas import MASTER, Sentinels, asking, replica_set, sentinels
from tests.e2e.harness import Fleet
from tests.e2e.waiting import DEADLINE_S, until

from runlane.journal.link import blocking_client_for
from runlane.journal.partition import Partition
from runlane.journal.server import Server
from runlane.producer import Client, RunStatus, Settings
from runlane.worker.testing.process import scripted_model

ACKNOWLEDGED = 200
"""So many answers before the fault, and again after it."""


@pytest.fixture
def trio(any_binary: Path, tmp_path: Path) -> Iterator[list[Server]]:
    """One of its own for each test, since the master does not survive it."""
    with replica_set(tmp_path, binary=any_binary, replicas=2) as servers:
        yield servers


@pytest.fixture
def watched(trio: list[Server], any_binary: Path, tmp_path: Path) -> Iterator[Sentinels]:
    with sentinels(tmp_path, binary=any_binary, master=trio[0]) as watching:
        yield watching


@pytest.fixture(scope="module")
def model() -> Iterator[Mapping[str, str]]:
    with scripted_model() as environment:
        yield environment


@pytest.fixture
async def partition(watched: Sentinels, prefix: str) -> AsyncIterator[Partition]:
    partition = Partition(watched.url, prefix=prefix, retry_s=DEADLINE_S, durability="ha-acked")
    await partition.open()
    yield partition
    await partition.close()


async def test_a_killed_master_takes_nothing_acknowledged_with_it_and_all_go_on(
    trio: list[Server],
    watched: Sentinels,
    partition: Partition,
    prefix: str,
    model: Mapping[str, str],
    tmp_path: Path,
) -> None:
    load = Load(partition)
    settings = Settings(
        redis_url=watched.url, prefix=prefix, retry_s=DEADLINE_S, durability="ha-acked"
    )
    with Fleet(watched.url, prefix, tmp_path, model) as fleet:
        await fleet.start(durability="ha-acked")
        async with await Client.connect(settings=settings) as client:
            session = client.session("s", agent="clerk")
            running = await session.run('[[tool hold {"gate": "open"}]] [[tool pay]]')
            writing = asyncio.create_task(load.write())
            await until(lambda: len(fleet.ledger.all("hold")) > 0, "the run has begun")
            await until(lambda: len(load.acknowledged) > ACKNOWLEDGED, "much is acknowledged")
            os.kill(trio[0].pid, signal.SIGKILL)
            await until(lambda: watched.master_port() != trio[0].port, "there is a new master")
            before = len(load.acknowledged)
            fleet.open("open")
            async with asyncio.timeout(DEADLINE_S):
                result = await running
                next_result = await (await session.run("[[tool pay]]"))
            await until(lambda: len(load.acknowledged) > before + ACKNOWLEDGED, "writing goes on")
            writing.cancel()
            await asyncio.wait([writing])
    assert (result.status, next_result.status) == (RunStatus.COMPLETED, RunStatus.COMPLETED)
    assert len(fleet.ledger.all("pay")) == len({each.key for each in fleet.ledger.all("pay")})
    assert await lost(partition, load.acknowledged) == []


async def test_a_demoted_master_is_left_for_the_new_one(
    trio: list[Server], watched: Sentinels, partition: Partition
) -> None:
    """It lives on and closes no connection: only its refusal to write says what it is now."""
    with blocking_client_for(watched.url, timeout_s=DEADLINE_S) as blocking:
        assert blocking.config_get("port") == {"port": str(trio[0].port)}
        with asking(watched.ports[0]) as sentinel:
            sentinel.execute_command("SENTINEL", "FAILOVER", MASTER)
        await until(lambda: watched.master_port() != trio[0].port, "there is a new master")
        port = watched.master_port()
        with asking(trio[0].port) as redis:
            redis.replicaof("127.0.0.1", port)
        await partition.call("HSET", partition.keys.meta(), "probe", 1)
        assert await partition.call("CONFIG", "GET", "port") == [b"port", b"%d" % port]
        with pytest.raises(RedisConnectionError):
            blocking.hset(partition.keys.meta(), "probe", "2")
        assert blocking.config_get("port") == {"port": str(port)}
