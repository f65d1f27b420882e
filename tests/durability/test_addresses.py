"""What RUNLANE_REDIS_URL may name."""

from collections.abc import Callable
from pathlib import Path

import pytest
from redis.asyncio.sentinel import SentinelManagedSSLConnection
from redis.exceptions import RedisError
from tests.durability.replicas import running

from runlane.journal.errors import (
    InvalidInputError,
    ServerUnavailableError,
    ServerUnsuitableError,
)
from runlane.journal.link import Link, blocking_client_for, client_for
from runlane.journal.sentinel import is_sentinel, parse
from runlane.journal.server import Server

PLAIN = "redis+sentinel://a:1,b:2,c/m1/3"


def test_sentinels_a_master_and_a_database_are_named() -> None:
    address = parse(PLAIN)
    assert address.sentinels == (("a", 1), ("b", 2), ("c", 26379))
    assert address.master == "m1"
    assert address.options == {"db": 3}
    assert address.sentinel_options == {}


@pytest.mark.parametrize("url", ["redis+sentinel://a/m1", "redis+sentinel://a/m1/"])
def test_the_database_may_be_left_out(url: str) -> None:
    assert parse(url).options == {}


def test_an_address_may_be_one_of_ipv6() -> None:
    assert parse("redis+sentinel://[::1]:5,[::2]/m1/0").sentinels == (("::1", 5), ("::2", 26379))


def test_credentials_are_the_servers_unless_they_are_named_as_the_sentinels() -> None:
    query = "sentinel_username=watch&sentinel_password=w%2Fo"
    address = parse(f"redis+sentinel://user:p%40ss@a,b/my%20master/0?{query}")
    assert address.master == "my master"
    assert address.options == {"username": "user", "password": "p@ss", "db": 0}
    assert address.sentinel_options == {"username": "watch", "password": "w/o"}


def test_tls_is_spoken_with_sentinels_too() -> None:
    address = parse("rediss+sentinel://:x@a/m1/0?ssl_cert_reqs=none")
    assert address.options == {"password": "x", "db": 0, "ssl": True, "ssl_cert_reqs": "none"}
    assert address.sentinel_options == {"ssl": True, "ssl_cert_reqs": "none"}
    client = client_for("rediss+sentinel://a/m1/0")
    assert client.connection_pool.connection_class is SentinelManagedSSLConnection


def blocking(url: str) -> object:
    return blocking_client_for(url, timeout_s=1)


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://:s3c@a,b",
        "redis+sentinel://:s3c@a,b//0",
        "redis+sentinel://:s3c@a,b/m1/zero",
        "redis+sentinel://:s3c@a:s3c/m1/0",
        "redis+sentinel://:s3c@/m1/0",
        "redis+sentinel://:s3c@a,,b/m1/0",
        "sentinel://:s3c@a/m1/0",
    ],
)
@pytest.mark.parametrize("make", [Link, client_for, blocking])
def test_what_is_no_address_is_refused_without_its_password(
    make: Callable[[str], object], url: str
) -> None:
    with pytest.raises(InvalidInputError, match="RUNLANE_REDIS_URL") as refused:
        make(url)
    assert "s3c" not in str(refused.value)


def test_only_the_scheme_says_sentinel() -> None:
    assert is_sentinel(PLAIN)
    assert not is_sentinel("redis://sentinel:6379/0")


async def test_a_socket_may_be_named(any_binary: Path, tmp_path: Path) -> None:
    socket = tmp_path / "s"
    with running(any_binary, tmp_path, "--unixsocket", str(socket)):
        link = Link(f"unix://{socket}")
        assert await link.call("PING") == b"PONG"
        await link.close()
        with blocking_client_for(f"unix://{socket}", timeout_s=30) as redis:
            assert redis.ping()


async def test_a_server_that_is_no_sentinel_is_said_to_name_no_master(
    any_server: Server,
) -> None:
    url = f"redis+sentinel://127.0.0.1:{any_server.port}/m1/0"
    with pytest.raises((ServerUnavailableError, ServerUnsuitableError)) as refused:
        await Link(url).call("PING")
    assert "<" not in str(refused.value)
    with pytest.raises(RedisError) as failed:
        blocking_client_for(url, timeout_s=5).ping()
    assert "<" not in str(failed.value)
