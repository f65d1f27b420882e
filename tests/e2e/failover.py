"""A master and its replica behind one address, and a failover that loses what came last."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.durability.replicas import asking, replica_set

from runlane.journal.server import Server


class Address:
    """A TCP address on loopback behind which one server stands at a time.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self._server_port = server_port
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def move(self, server_port: int) -> None:
        """Let another server stand here; every connection is cut."""
        self._server_port = server_port
        for connection in self._connections:
            connection.cancel()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._connect(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        ways = [_pass_on(reader, far_writer), _pass_on(far_reader, writer)]
        tasks = [asyncio.create_task(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for end in (writer, far_writer):
                end.transport.abort()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


class Failover:
    """Two servers that hold the same, until `cut`; the second takes over at `promote`.

    Attributes:
        address: What everybody connects to.
        master: The server that stands there at first.
        replica: The one that takes over.
    """

    def __init__(self, address: Address, master: Server, replica: Server) -> None:
        self.address = address
        self.master = master
        self.replica = replica

    def cut(self) -> None:
        """From here on the replica gets nothing, and the master goes on acknowledging."""
        with asking(self.master.port) as master, asking(self.replica.port) as replica:
            master.publish("step", "")  # WAIT covers what its own connection sent
            assert master.wait(1, 10_000) == 1
            replica.replicaof("NO", "ONE")

    def promote(self) -> None:
        """Let everybody reach the replica, and nobody the master."""
        self.address.move(self.replica.port)


@asynccontextmanager
async def failover(folder: Path, binary: Path) -> AsyncGenerator[Failover]:
    with replica_set(folder, binary=binary) as (master, replica):
        address = Address(master.port)
        listener = await asyncio.start_server(address.accept, "127.0.0.1", 0)
        address.port = listener.sockets[0].getsockname()[1]
        async with listener:
            yield Failover(address, master, replica)
            address.move(master.port)
