"""The hub against a server that answers when a test says so."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest
from tests.producer.support import DEADLINE_S, until

from runlane.producer.hub import Feed, Hub, Signal

Command = tuple[bytes, ...]


class ScriptedServer:
    """Takes commands in; those about the connection itself are answered at once."""

    def __init__(self) -> None:
        self.commands: asyncio.Queue[Command] = asyncio.Queue()
        self.connections = 0
        self._writer: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writer = writer
        while header := await reader.readline():
            words: list[bytes] = []
            for _ in range(int(header[1:])):
                length = int((await reader.readline())[1:])
                words.append((await reader.readexactly(length + 2))[:-2])
            if words[0] == b"CLIENT":
                writer.write(b"+OK\r\n")
            else:
                self.commands.put_nowait(tuple(words))
        writer.close()

    async def expect(self, *command: bytes) -> None:
        async with asyncio.timeout(DEADLINE_S):
            assert await self.commands.get() == command

    def send(self, *words: bytes) -> None:
        self._write(b"*%d\r\n" % len(words) + b"".join(map(_bulk, words)))

    def confirm(self, kind: bytes, channel: bytes) -> None:
        self._write(b"*3\r\n" + _bulk(kind) + _bulk(channel) + b":1\r\n")

    def hang_up(self) -> None:
        cast("asyncio.StreamWriter", self._writer).close()

    def _write(self, data: bytes) -> None:
        cast("asyncio.StreamWriter", self._writer).write(data)


def _bulk(word: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(word), word)


@pytest.fixture
async def scripted() -> AsyncIterator[tuple[Hub, ScriptedServer]]:
    scripted = ScriptedServer()
    async with await asyncio.start_server(scripted.serve, "127.0.0.1") as server:
        hub = Hub(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        yield hub, scripted
        await hub.close()


async def hear(feed: Feed) -> bytes | Signal:
    return await feed.next(DEADLINE_S)


async def test_a_channel_is_subscribed_to_once(scripted: tuple[Hub, ScriptedServer]) -> None:
    hub, server = scripted
    with hub.join("c") as one, hub.join("c") as other, hub.join("d") as third:
        await server.expect(b"SUBSCRIBE", b"c")
        await server.expect(b"SUBSCRIBE", b"d")
        server.confirm(b"subscribe", b"c")
        server.send(b"message", b"c", b"m1")
        server.send(b"message", b"d", b"m1")
        server.confirm(b"subscribe", b"d")
        server.send(b"message", b"d", b"m2")
        for feed, message in ((one, b"m1"), (other, b"m1"), (third, b"m2")):
            assert await hear(feed) is Signal.RESYNC
            assert await hear(feed) == message
        assert await one.next(0) is Signal.IDLE


async def test_who_joins_again_hears_from_its_own_confirmation_on(
    scripted: tuple[Hub, ScriptedServer],
) -> None:
    hub, server = scripted
    with hub.join("other") as other:
        await server.expect(b"SUBSCRIBE", b"other")
        with hub.join("c"):
            await server.expect(b"SUBSCRIBE", b"c")
        await server.expect(b"UNSUBSCRIBE", b"c")
        with hub.join("c") as again:
            await server.expect(b"SUBSCRIBE", b"c")
            server.confirm(b"subscribe", b"other")
            server.confirm(b"subscribe", b"c")
            server.send(b"message", b"c", b"before")
            server.confirm(b"unsubscribe", b"c")
            server.confirm(b"subscribe", b"c")
            server.send(b"message", b"c", b"after")
            assert await hear(again) is Signal.RESYNC
            assert await hear(again) == b"after"
            assert await hear(other) is Signal.RESYNC


async def test_a_lost_connection_is_made_again(scripted: tuple[Hub, ScriptedServer]) -> None:
    hub, server = scripted
    with hub.join("c") as feed:
        await server.expect(b"SUBSCRIBE", b"c")
        server.confirm(b"subscribe", b"c")
        assert await hear(feed) is Signal.RESYNC
        server.hang_up()
        await server.expect(b"SUBSCRIBE", b"c")
        server.send(b"message", b"c", b"before")
        server.confirm(b"subscribe", b"c")
        server.send(b"message", b"c", b"after")
        assert await hear(feed) is Signal.RESYNC
        assert await hear(feed) == b"after"


async def test_a_silent_server_is_asked_and_then_left(
    scripted: tuple[Hub, ScriptedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runlane.producer.hub.SILENCE_S", 0.3)
    hub, server = scripted
    with hub.join("c") as feed:
        await server.expect(b"SUBSCRIBE", b"c")
        server.confirm(b"subscribe", b"c")
        assert await hear(feed) is Signal.RESYNC
        await server.expect(b"PING")
        server.send(b"pong", b"")
        await server.expect(b"PING")
        await until(lambda: server.connections == 2)
        await server.expect(b"SUBSCRIBE", b"c")
