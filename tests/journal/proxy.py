"""A TCP proxy in front of a server that can lose what the server says."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class Proxy:
    """Passes bytes both ways, one server connection for each client connection.

    Attributes:
        port: Where it listens.
        losing: While true, the next reply is read, thrown away, and the connection closed.
        lost: How many replies were lost.
    """

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self.losing = False
        self.lost = 0
        self._server_port = server_port

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        ways = [self._requests(reader, far_writer), self._replies(far_reader, writer)]
        tasks = [asyncio.create_task(way) for way in ways]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for end in (writer, far_writer):
            end.close()
            with suppress(ConnectionError):
                await end.wait_closed()

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()

    async def _replies(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self.losing:
                self.losing = False
                self.lost += 1
                return
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def proxy_to(port: int) -> AsyncGenerator[Proxy, None]:
    """Run a proxy in front of the server at `port` on loopback."""
    proxy = Proxy(port)
    listener = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    async with listener:
        yield proxy
