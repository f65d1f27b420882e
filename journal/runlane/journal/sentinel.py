"""Servers behind Sentinel: which of them is the master is asked anew for each connection."""

from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from redis import Redis, connection
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.sentinel import MasterNotFoundError as AsyncMasterNotFoundError
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.sentinel import MasterNotFoundError, Sentinel

SCHEMES: Final = ("redis+sentinel", "rediss+sentinel")
PORT: Final = 26379
ANSWER_TIMEOUT_S: Final = 1.0
"""How long one Sentinel may take; then the next one is asked."""


class SentinelAddress(Struct, frozen=True):
    """What a URL of the Sentinel form names.

    Attributes:
        sentinels: Host and port of each.
        master: The name under which they watch the master and its replicas.
        options: Keyword arguments for connections to the master.
        sentinel_options: The same for connections to Sentinels.
    """

    sentinels: tuple[tuple[str, int], ...]
    master: str
    options: Mapping[str, Any]
    sentinel_options: Mapping[str, Any]


def is_sentinel(url: str) -> bool:
    """Return whether a URL names Sentinels rather than a server."""
    return url.partition("://")[0] in SCHEMES


def parse(url: str) -> SentinelAddress:
    """Read `redis+sentinel://user:password@host:port,host:port/master/db?option=value`.

    The credentials are the servers'. The Sentinels' own, if they have any, are the options
    `sentinel_username` and `sentinel_password`. With `rediss+sentinel` all speak TLS.

    Raises:
        ValueError: It is not of this form.
    """
    parts = urlsplit(url)
    credentials, _, hosts = parts.netloc.rpartition("@")
    master, _, database = parts.path.removeprefix("/").partition("/")
    if not master or not (database or "0").isdigit():
        raise ValueError("no master, or the database is no number")
    scheme = parts.scheme.removesuffix("+sentinel")
    options: dict[str, Any] = cast("Any", connection).parse_url(  # redis-py leaves it untyped
        f"{scheme}://{credentials}@-/{database}{'?' if parts.query else ''}{parts.query}"
    )
    del options["host"]
    if options.pop("connection_class", None) is connection.SSLConnection:
        options["ssl"] = True
    own = {"username", "password", "db"}
    sentinel_options = {name: value for name, value in options.items() if name not in own}
    for name in ("username", "password"):
        if value := sentinel_options.pop(f"sentinel_{name}", None):
            sentinel_options[name] = value
        options.pop(f"sentinel_{name}", None)
    return SentinelAddress(
        sentinels=tuple(map(_host_and_port, hosts.split(","))),
        master=unquote(master),
        options=options,
        sentinel_options=sentinel_options,
    )


def async_client(address: SentinelAddress, **options: Any) -> AsyncRedis:
    """Return a client of the master, whichever server that is when it connects."""
    sentinels: Any = cast("Any", _AsyncSentinels)(
        address.sentinels, sentinel_kwargs=_sentinel_options(address, ANSWER_TIMEOUT_S)
    )
    client: AsyncRedis = sentinels.master_for(
        address.master, redis_connect_func=_greet, **address.options, **options
    )
    return client


def sentinel_clients(address: SentinelAddress) -> list[AsyncRedis]:
    """Return a client for each Sentinel, to be closed by the caller."""
    options = _sentinel_options(address, ANSWER_TIMEOUT_S)
    return [AsyncRedis(host=host, port=port, **options) for host, port in address.sentinels]


def blocking_client(address: SentinelAddress, *, timeout_s: float, **options: Any) -> Redis:
    """The same for synchronous code; a Sentinel may not take longer than the server either."""
    sentinels: Any = cast("Any", _Sentinels)(
        address.sentinels,
        sentinel_kwargs=_sentinel_options(address, min(ANSWER_TIMEOUT_S, timeout_s)),
    )
    client: Redis = sentinels.master_for(
        address.master, redis_connect_func=_greet_blocking, **address.options, **options
    )
    return client


class _AsyncSentinels(AsyncSentinel):
    async def discover_master(self, service_name: str) -> tuple[str, int]:
        try:
            found: tuple[str, int] = await cast("Any", super()).discover_master(service_name)
        except AsyncMasterNotFoundError as error:
            raise RedisConnectionError(_unknown(service_name)) from error
        finally:  # they are asked rarely: no connection to them is kept
            for sentinel in self.sentinels:
                await sentinel.aclose()
        return found


class _Sentinels(Sentinel):
    def discover_master(self, service_name: str) -> tuple[str, int]:
        try:
            found: tuple[str, int] = cast("Any", super()).discover_master(service_name)
        except MasterNotFoundError as error:
            raise RedisConnectionError(_unknown(service_name)) from error
        finally:
            for sentinel in self.sentinels:
                sentinel.close()
        return found


def _unknown(master: str) -> str:
    return (
        f"no Sentinel of the URL names a master {master!r}; each of them is away or is none, "
        "refuses the password, or does not watch it"
    )


async def _greet(connection: Any) -> None:
    await connection.on_connect()
    await connection.send_command("INFO", "replication")
    _check_role(await connection.read_response())


def _greet_blocking(connection: Any) -> None:
    connection.on_connect()
    connection.send_command("INFO", "replication")
    _check_role(connection.read_response())


def _check_role(info: bytes) -> None:
    """Refuse a server that Sentinel names but that was demoted meanwhile, or is yet to be."""
    if b"role:master" not in info:
        raise RedisConnectionError("the server that Sentinel names is no master")


def _sentinel_options(address: SentinelAddress, timeout_s: float) -> dict[str, Any]:
    return {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        **address.sentinel_options,
    }


def _host_and_port(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError("a Sentinel without a host")
    return parts.hostname, parts.port or PORT
