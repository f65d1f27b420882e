"""One shared connection to the server, on which concurrent calls travel together.

redis-py spends most of a call on the round trip. Calls that are made in one tick of the event
loop leave here in one write, further ones follow without waiting for replies, and replies are
matched in order, as the protocol guarantees.
"""

import asyncio
import socket
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

import hiredis
from redis import Redis as BlockingRedis
from redis.asyncio import Redis
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    InvalidResponse,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
)
from redis.exceptions import (
    TimeoutError as RedisTimeoutError,
)

from runlane.journal import sentinel
from runlane.journal.errors import InvalidInputError, ServerUnavailableError, ServerUnsuitableError

REPLY_TIMEOUT_S: Final = 10.0
CONNECT_TIMEOUT_S: Final = 5.0
DEADLINE_GRAIN_S: Final = 1.0
"""How much of its time a reply may lose, so that a deadline is not set anew for each."""

LOST: Final = (RedisConnectionError, RedisTimeoutError, InvalidResponse, OSError, TimeoutError)
"""What redis-py raises when the server is away."""

_DEMOTED: Final = ("MASTERDOWN", "UNBLOCKED", "WAIT cannot be used with replica")

_KEEPALIVE: Final = (
    {socket.TCP_KEEPIDLE: 15, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 3}
    if sys.platform == "linux"
    else {}
)
"""A host that vanished is noticed within half a minute, by those who only listen too."""

_Call = tuple[bytes, "asyncio.Future[Any]"]
_Client = TypeVar("_Client", Redis, BlockingRedis)


def client_for(url: str) -> Redis:
    """Return a redis-py client for blocking calls and subscriptions, without a read timeout.

    Raises:
        InvalidInputError: The URL is none.
    """
    options: dict[str, Any] = {"socket_connect_timeout": CONNECT_TIMEOUT_S}
    options |= _socket_options(url)
    return _checked(
        url,
        lambda: (
            sentinel.async_client(sentinel.parse(url), **options)
            if sentinel.is_sentinel(url)
            else Redis.from_url(url, **options)
        ),
    )


def blocking_client_for(url: str, *, timeout_s: float) -> BlockingRedis:
    """Return a redis-py client for synchronous code.

    Args:
        url: The server.
        timeout_s: How long a connection attempt, or an answer, may take.

    Raises:
        InvalidInputError: The URL is none.
    """
    options: dict[str, Any] = {"socket_timeout": timeout_s}
    options |= {"socket_connect_timeout": min(CONNECT_TIMEOUT_S, timeout_s)}
    options |= _socket_options(url)
    return _checked(
        url,
        lambda: (
            sentinel.blocking_client(sentinel.parse(url), timeout_s=timeout_s, **options)
            if sentinel.is_sentinel(url)
            else BlockingRedis.from_url(url, **options)
        ),
    )


def _socket_options(url: str) -> dict[str, Any]:
    if url.startswith("unix:"):
        return {}
    return {"socket_keepalive": True, "socket_keepalive_options": _KEEPALIVE}


def _checked(url: str, make: Callable[[], _Client]) -> _Client:
    try:
        client = make()
        database = urlsplit(url).path.strip("/")
        if url.startswith(("redis:", "rediss:")) and database and not database.isdigit():
            raise ValueError(database)
    except (ValueError, TypeError):
        # What urllib says of a mistyped URL quotes parts of the password.
        raise InvalidInputError(
            "RUNLANE_REDIS_URL is not of the form redis://user:password@host:port/db (rediss:// "
            "with TLS, unix:// for a socket) or redis+sentinel://user:password@host:port,host:port/"
            "master/db; percent-encode special characters of the password"
        ) from None
    return client


class Link:
    """A connection that is opened at the first call, and again after it was lost."""

    def __init__(self, url: str) -> None:
        self._client = client_for(url)
        self._connection: Any = None  # redis-py leaves it untyped
        self._outbox: list[_Call] = []
        self._in_flight: deque[_Call] = deque()
        self._sender: asyncio.Task[None] | None = None
        self._reader: asyncio.Task[None] | None = None

    async def call(self, *command: str | bytes | int | float) -> Any:
        """Send a command and return its reply, as bytes, integers and lists.

        Raises:
            ServerUnavailableError: The server is away. If it was reached before, it may have
                carried the command out.
            ServerUnsuitableError: It refuses the credentials.
            InvalidInputError: A text cannot be encoded; nothing was sent.
            redis.exceptions.ResponseError: It refuses the command.
        """
        return await self.put(*command)

    def put(self, *command: str | bytes | int | float) -> "asyncio.Future[Any]":
        """Send a command, behind all that were put before it; see `call` for its reply."""
        try:
            packed: bytes = cast("Any", hiredis).pack_command(command)  # its stub is wrong
        except UnicodeEncodeError as error:
            raise InvalidInputError(f"this text cannot be sent: {error}") from error
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._outbox.append((packed, future))
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())
        return future

    async def close(self) -> None:
        """Close the connection; calls in flight fail."""
        tasks = [task for task in (self._sender, self._reader) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._drop(RedisConnectionError("closed by this process"))
        await self._client.aclose()

    async def _send(self) -> None:
        try:
            while self._outbox:
                connection = await self._connected()
                calls, self._outbox = self._outbox, []
                self._in_flight.extend(calls)
                if self._reader is None or self._reader.done():
                    self._reader = asyncio.create_task(self._read(connection))
                await connection.send_packed_command(
                    b"".join([packed for packed, _ in calls]), check_health=False
                )
        except (*LOST, RedisError) as error:
            await self._drop(error)

    async def _connected(self) -> Any:
        if self._connection is not None:
            return self._connection
        pool: Any = self._client.connection_pool  # redis-py leaves it untyped
        connection: Any = pool.make_connection()
        async with asyncio.timeout(CONNECT_TIMEOUT_S):  # the handshake has no deadline of its own
            await connection.connect()
        self._connection = connection
        return connection

    async def _read(self, connection: Any) -> None:
        clock = asyncio.get_running_loop().time
        try:
            # Not read_response(timeout=): it answers None, and later replies would shift.
            async with asyncio.timeout(REPLY_TIMEOUT_S) as deadline:
                set_at = clock()
                while self._in_flight:
                    reply = await _reply(connection)
                    self._answer(reply)
                    if isinstance(reply, ResponseError) and is_demotion(reply):
                        raise RedisConnectionError("the server was demoted to a replica")
                    if (now := clock()) > set_at + DEADLINE_GRAIN_S:
                        set_at = now
                        deadline.reschedule(now + REPLY_TIMEOUT_S)
        except LOST as error:
            await self._drop(error)

    def _answer(self, reply: Any) -> None:
        _, future = self._in_flight.popleft()
        if future.done():
            return
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    async def _drop(self, error: BaseException) -> None:
        """Forget the connection and fail every call that waits for it."""
        connection, self._connection = self._connection, None
        sender, self._sender = self._sender, None
        if sender is not None and sender is not asyncio.current_task():
            sender.cancel()  # it may wait for a server that reads no more
        sent, unsent = list(self._in_flight), self._outbox
        self._in_flight.clear()
        self._outbox = []
        for calls, was_sent in ((sent, True), (unsent, False)):
            for _, future in calls:
                if not future.done():
                    future.set_exception(_meaning(error, sent=was_sent))
        if connection is not None:
            if connection._writer is not None:
                connection._writer.transport.abort()  # what is in its buffer is not sent late
            await connection.disconnect(nowait=True)


def is_demotion(error: ResponseError) -> bool:
    """Return whether a server refuses since it is no master: the next connection may find one."""
    return isinstance(error, ReadOnlyError) or str(error).startswith(_DEMOTED)


async def _reply(connection: Any) -> Any:
    try:
        return await connection.read_response(disable_decoding=True, disconnect_on_error=False)
    except LOST:
        raise
    except RedisError as error:
        return error


def _meaning(error: BaseException, *, sent: bool) -> Exception:
    if isinstance(error, BusyLoadingError):
        return ServerUnavailableError("the Redis server is loading its data")
    if isinstance(error, AuthenticationError | AuthorizationError) or "NOAUTH" in str(error):
        return ServerUnsuitableError(
            f"the Redis server refuses the credentials ({error}); check the user and password "
            "in RUNLANE_REDIS_URL"
        )
    if isinstance(error, LOST):
        return ServerUnavailableError(
            f"the Redis server is away: {str(error) or type(error).__name__}; check that it runs, "
            "and RUNLANE_REDIS_URL",
            sent=sent,
        )
    return ServerUnsuitableError(f"the Redis server refuses the connection: {error}")
