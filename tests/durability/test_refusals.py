"""A server that accepts no writes for the moment is waited for, and another one looked for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.exceptions import ReadOnlyError, ResponseError
from tests.durability.replicas import asking
from tests.e2e.waiting import until
from tests.journal.driving import open_driver

from runlane.journal.errors import ServerUnavailableError
from runlane.journal.link import Link
from runlane.journal.server import Server, launch


@pytest.fixture
def own_server(any_binary: Path, tmp_path: Path) -> Iterator[Server]:
    with launch(tmp_path, binary=any_binary) as server:
        yield server


async def test_a_connection_to_a_replica_is_given_up_at_its_first_refusal(
    own_server: Server,
) -> None:
    """Where a name leads to the master, the next connection finds the one of now."""
    link = Link(own_server.url)
    first = await link.call("CLIENT", "ID")
    with asking(own_server.port) as redis:
        redis.replicaof("127.0.0.1", 1)
        with pytest.raises(ReadOnlyError):
            await link.call("SET", "k", "v")
        assert await link.call("CLIENT", "ID") != first
        redis.replicaof("NO", "ONE")
    assert await link.call("SET", "k", "v") == b"OK"
    await link.close()


async def test_too_few_replicas_are_waited_for(own_server: Server) -> None:
    async with open_driver(own_server.url, retry_s=0.2) as driver:
        with asking(own_server.port) as redis:
            redis.config_set("min-replicas-to-write", 1)
            with pytest.raises(ServerUnavailableError, match="min-replicas-to-write") as refused:
                await driver.submit()
            assert not refused.value.sent
            assert await driver.queued() == []
            redis.config_set("min-replicas-to-write", 0)
        assert (await driver.submit()).created


async def test_a_demoted_server_that_waits_for_replicas_is_left(own_server: Server) -> None:
    link = Link(own_server.url)
    with asking(own_server.port) as redis:
        await link.call("SET", "k", "v")
        waiting = link.put("WAIT", 1, 0)
        await until(lambda: redis.info("clients")["blocked_clients"] == 1, "it waits")
        first = {client["id"] for client in redis.client_list()}
        redis.replicaof("127.0.0.1", 1)
        with pytest.raises(ResponseError, match="instance state changed"):
            await waiting
        assert str(await link.call("CLIENT", "ID")) not in first
    await link.close()
