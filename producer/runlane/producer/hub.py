"""One subscriber connection per process: sessions share it, listeners are served from memory.

It is a plain connection rather than a redis-py PubSub: one task writes to it and one reads from
it, so that a listener knows from which message on it hears everything, and none can block it.
"""

import asyncio
import random
from collections import deque
from enum import Enum
from typing import Any, Final, Self

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from runlane.journal.errors import RunlaneError, ServerUnavailableError
from runlane.journal.link import CONNECT_TIMEOUT_S, LOST, client_for
from runlane.journal.partition import RETRY_DELAY_MAX_S, refused

MESSAGES_MAX: Final = 1000
"""Unread messages of one listener; one that is slower than that reads the journal instead."""

SILENCE_S: Final = 10.0
"""After this long without a message the server is asked whether it is there."""

RETRY_DELAY_MIN_S: Final = 0.05


class Signal(Enum):
    """What a listener hears besides messages."""

    RESYNC = "resync"
    """From here on every message is heard; what came before must be read from the journal."""

    IDLE = "idle"
    """No message came in that time."""


class Feed:
    """What one listener hears of one channel; a context manager that leaves the hub at its end.

    The first thing heard is RESYNC, as soon as the server has confirmed the subscription. It
    comes again after a lost connection, and when unread messages had to be dropped.
    """

    def __init__(self, hub: "Hub", channel: str) -> None:
        self.channel = channel
        self._hub = hub
        self._messages: deque[bytes | Signal] = deque()
        self._ready = asyncio.Event()
        self._failure: RunlaneError | None = None
        self._ticket = 0
        self._live = False

    async def next(self, timeout: float) -> bytes | Signal:
        """Return the next message, RESYNC, or IDLE after `timeout` seconds without either.

        Raises:
            ServerUnsuitableError: The server refuses the subscription.
            ServerUnavailableError: The hub was closed.
        """
        if not self._messages and self._failure is None:
            try:
                async with asyncio.timeout(timeout):
                    await self._ready.wait()
            except TimeoutError:
                return Signal.IDLE
        if self._failure is not None:
            raise self._failure
        message = self._messages.popleft()
        if not self._messages:
            self._ready.clear()
        return message

    def expect(self, ticket: int) -> None:
        """Hear nothing until the server has answered the command with this number."""
        self._ticket = ticket
        self._live = False

    def answered(self, number: int) -> None:
        """Begin to hear messages if the answer to the awaited command has come."""
        if not self._live and number >= self._ticket:
            self._live = True
            self._put(Signal.RESYNC)

    def hear(self, message: bytes) -> None:
        """Take a message in; if too many lie unread, drop them and have the journal read."""
        if not self._live:
            return
        if len(self._messages) >= MESSAGES_MAX:
            self._messages.clear()
            self._put(Signal.RESYNC)
        self._put(message)

    def fail(self, error: RunlaneError) -> None:
        """Raise `error` to the listener from now on."""
        self._failure = error
        self._ready.set()

    def _put(self, message: bytes | Signal) -> None:
        self._messages.append(message)
        self._ready.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._hub.leave(self)


class Hub:
    """Subscribes to each channel once, however many listen; reconnects by itself, for ever."""

    def __init__(self, url: str) -> None:
        self._client = client_for(url)
        self._feeds: dict[str, set[Feed]] = {}
        self._task: asyncio.Task[None] | None = None
        self._connected = False
        self._outbox: list[tuple[str, ...]] = []
        self._wanted = asyncio.Event()
        self._asked = 0
        self._answered = 0

    def join(self, channel: str) -> Feed:
        """Return a new feed of a channel, to be left by its `with` block."""
        feed = Feed(self, channel)
        self._feeds.setdefault(channel, set()).add(feed)
        feed.expect(self._ask("SUBSCRIBE", channel))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="runlane-hub")
        return feed

    def leave(self, feed: Feed) -> None:
        """Serve a feed no more; the last of its channel ends the subscription."""
        feeds = self._feeds.get(feed.channel, set())
        feeds.discard(feed)
        if not feeds and self._feeds.pop(feed.channel, None) is not None:
            self._ask("UNSUBSCRIBE", feed.channel)

    async def close(self) -> None:
        """Close the connection; whoever still listens gets an error."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._fail(ServerUnavailableError("this client was closed"))
        await self._client.aclose()

    def _ask(self, command: str, channel: str) -> int:
        """Send a command that the server answers once, and return its number."""
        if not self._connected:
            return 0
        self._asked += 1
        self._send(command, channel)
        return self._asked

    def _send(self, *command: str) -> None:
        self._outbox.append(command)
        self._wanted.set()

    async def _run(self) -> None:
        delay = RETRY_DELAY_MIN_S
        pool: Any = self._client.connection_pool  # redis-py leaves it untyped
        while True:
            connection: Any = pool.make_connection()
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    await connection.connect()
                delay = RETRY_DELAY_MIN_S
                await self._converse(connection)
            except LOST:
                pass
            except ResponseError as error:
                self._fail(refused(error))
                return
            finally:
                self._connected = False
                await connection.disconnect(nowait=True)
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 (jitter)
            delay = min(2 * delay, RETRY_DELAY_MAX_S)

    async def _converse(self, connection: Any) -> None:
        self._connected = True
        self._outbox.clear()
        self._asked = self._answered = 0
        for channel, feeds in self._feeds.items():
            ticket = self._ask("SUBSCRIBE", channel)
            for feed in feeds:
                feed.expect(ticket)
        writer = asyncio.create_task(self._write(connection))
        try:
            await self._read(connection)
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)  # the reader fails with it

    async def _write(self, connection: Any) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            commands, self._outbox = self._outbox, []
            await connection.send_packed_command(
                connection.pack_commands(commands), check_health=False
            )

    async def _read(self, connection: Any) -> None:
        silent = False
        while True:
            reply = await connection.read_response(
                disable_decoding=True, timeout=SILENCE_S, disconnect_on_error=False
            )
            if reply is not None:
                silent = False
                self._dispatch(reply)
            elif silent:
                raise RedisConnectionError("the server answers no PING")
            else:
                silent = True
                self._send("PING")

    def _dispatch(self, reply: Any) -> None:
        match reply:
            case [b"message", channel, message]:
                for feed in self._feeds.get(channel.decode(), ()):
                    feed.hear(message)
            case [b"subscribe" | b"unsubscribe", channel, _]:
                self._answered += 1
                for feed in self._feeds.get(channel.decode(), ()):
                    feed.answered(self._answered)
            case _:
                pass  # the answer to a PING

    def _fail(self, error: RunlaneError) -> None:
        for feeds in self._feeds.values():
            for feed in feeds:
                feed.fail(error)
