"""The server side of a deployment: what is refused at once, and what is tried again."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from tests.journal.builders import said, started
from tests.journal.driving import Driver, open_driver
from tests.journal.proxy import Proxy, proxy_to

from runlane.journal.errors import (
    ServerUnavailableError,
    ServerUnsuitableError,
    SessionOutcomeUnknownError,
)
from runlane.journal.partition import Partition, check_version
from runlane.journal.server import Server


async def test_a_prefix_can_be_opened_again(partition: Partition) -> None:
    again = Partition(partition.url, prefix="unused", retry_s=1)
    again.keys = partition.keys
    await again.open()
    await again.close()


@pytest.mark.parametrize(("field", "value"), [("schema", "2"), ("partitions", "4")])
async def test_a_prefix_that_was_made_otherwise_is_refused(
    partition: Partition, redis: Redis, field: str, value: str
) -> None:
    await partition.call("HSET", partition.keys.meta(), field, value)
    with pytest.raises(ServerUnsuitableError, match=f"{field} {value}.*RUNLANE_PREFIX"):
        await partition.open()
    assert await partition.call("HGET", partition.keys.meta(), field) == value.encode()


@pytest.mark.parametrize("version", ["6.2.0", "6.2", "7.0.15", "8.4.0", "10.0.1"])
def test_a_server_that_is_new_enough_is_accepted(version: str) -> None:
    check_version(f"# Server\r\nredis_version:{version}\r\nredis_mode:standalone\r\n")


@pytest.mark.parametrize(
    "info", ["redis_version:6.0.16", "redis_version:5.0.3", "redis_version:x", "", "# Server"]
)
def test_a_server_that_is_too_old_is_refused(info: str) -> None:
    with pytest.raises(ServerUnsuitableError, match=r"6\.2"):
        check_version(info)


async def test_a_server_that_is_away_is_an_error_within_the_retry_time() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    partition = Partition(f"redis://127.0.0.1:{port}", prefix="p", retry_s=0.3)
    began = time.monotonic()
    with pytest.raises(ServerUnavailableError) as refused:
        await partition.open()
    assert 0.3 <= time.monotonic() - began < 10
    assert not refused.value.sent
    await partition.close()


async def test_a_transition_that_was_never_sent_has_not_happened(own_server: Server) -> None:
    async with open_driver(own_server.url, retry_s=0.2) as driver:
        own_server.stop()
        for _ in range(2):
            with pytest.raises(ServerUnavailableError):
                await driver.submit()
        assert own_server.start()
        assert await driver.partition.call("EXISTS", driver.keys.sessions()) == 0


async def test_a_call_waits_for_a_server_that_comes_back(own_server: Server) -> None:
    async with open_driver(own_server.url) as driver:
        first = (await driver.submit()).run_id
        own_server.stop()
        waiting = asyncio.create_task(driver.submit(session="t"))
        await asyncio.sleep(0)
        own_server.start()
        second = (await waiting).run_id
        assert {run.lease.run_id for run in (await driver.claim()).runs} == {first, second}


@pytest.fixture
async def proxy(any_server: Server) -> AsyncIterator[Proxy]:
    async with proxy_to(any_server.port) as running:
        yield running


@pytest.fixture
async def far(proxy: Proxy, driver: Driver) -> AsyncIterator[Driver]:
    """The same deployment, through the proxy."""
    async with open_driver(proxy.url, prefix=driver.prefix) as far:
        yield far


async def test_a_lost_reply_is_asked_for_again_and_the_step_happens_once(
    proxy: Proxy, far: Driver
) -> None:
    await far.completed(session="warm-up")  # the server knows the scripts
    proxy.losing = True
    submitted = await far.submit()
    proxy.losing = True
    lease = await far.lease()
    proxy.losing = True
    await far.checkout(lease)
    proxy.losing = True
    await far.append(lease, [started(lease), said(lease)])
    proxy.losing = True
    await far.finish(lease)
    assert proxy.lost == 5
    assert lease.run_id == submitted.run_id
    assert lease.attempt == 1
    kinds = [record.kind for record in await far.records()]
    assert kinds == ["run_queued", "run_started", "message_appended", "run_finished"]
    assert far.last.code == "DUP"
    await far.check(quiescent=True)


async def test_a_lost_receipt_is_asked_for_again_and_nothing_is_said_twice(
    proxy: Proxy, far: Driver
) -> None:
    lease = await far.held()
    await far.begin(lease)
    await far.steer("once")  # the server knows the script
    proxy.losing = True
    receipt = await far.steer("more")
    assert (proxy.lost, receipt.accepted, receipt.queue_size) == (1, True, 2)
    assert [each.content for each in (await far.checkout(lease)).inputs] == ["once", "more"]
    await far.check()


async def test_a_lost_reply_that_is_not_found_again_is_an_unknown_outcome(
    proxy: Proxy, driver: Driver
) -> None:
    await driver.completed(session="warm-up")  # the server knows the scripts
    async with open_driver(proxy.url, prefix=driver.prefix, retry_s=0) as far:
        proxy.losing = True
        with pytest.raises(SessionOutcomeUnknownError) as unknown:
            await far.submit()
    assert (unknown.value.transition, unknown.value.sent) == ("submit", True)
    assert await driver.queued() == [unknown.value.request_id]


async def test_calls_in_flight_on_a_killed_connection_happen_once(driver: Driver) -> None:
    kill = ("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    submits = [asyncio.create_task(driver.submit(session=f"s{n}")) for n in range(300)]
    for _ in range(10):
        await asyncio.sleep(0.001)  # somewhere in the middle of it
        await driver.redis.execute_command(*kill)  # type: ignore[no-untyped-call]
    accepted = await asyncio.gather(*submits)
    assert len(await driver.queued()) == 300
    assert {run.run_id for run in accepted} == set(await driver.queued())
    await driver.check()


async def test_a_server_that_forgot_its_scripts_is_taught_again(driver: Driver) -> None:
    lease = await driver.held()
    await driver.redis.script_flush()
    await driver.begin(lease)
    await driver.redis.script_flush()
    await driver.finish(lease)
    await driver.check(quiescent=True)


async def test_a_full_server_refuses_and_keeps_what_it_has(driver: Driver) -> None:
    lease = await driver.held()
    await driver.partition.call("CONFIG", "SET", "maxmemory", 1)
    try:
        async with driver.unchanged():
            with pytest.raises(ServerUnsuitableError, match="full"):
                await driver.submit()
            with pytest.raises(ServerUnsuitableError, match="full"):
                await driver.append(lease, [started(lease)])
    finally:
        await driver.partition.call("CONFIG", "SET", "maxmemory", 0)
    await driver.begin(lease)
    await driver.check()


async def test_a_replica_is_waited_for_until_it_is_promoted(own_server: Server) -> None:
    async with open_driver(own_server.url, retry_s=0.2) as driver:
        await driver.partition.call("REPLICAOF", "127.0.0.1", 1)
        with pytest.raises(ServerUnavailableError, match="read-only replica"):
            await driver.submit()
        await driver.partition.call("REPLICAOF", "NO", "ONE")
        assert (await driver.submit()).created


async def test_credentials_without_a_right_are_refused(own_server: Server) -> None:
    async with open_driver(own_server.url) as driver:
        await driver.partition.call(
            "ACL", "SETUSER", "guest", "on", ">s3cret", "~*", "+@read", "+info"
        )
        guest = Partition(own_server.url.replace("//", "//guest:s3cret@"), prefix="p", retry_s=0.2)
        with pytest.raises(ServerUnsuitableError, match="RUNLANE_REDIS_URL") as refused:
            await guest.open()
        assert "s3cret" not in str(refused.value)
        for partition in (guest, driver.partition):
            await partition.close()
