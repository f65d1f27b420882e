"""The scripted model as a server: inside a test (`ModelServer`), or as a process of its own.

    python -m runlane.worker.testing.model_server --port 0 --script directives

prints its URL and serves until SIGTERM or, on Linux, until the process that started it dies.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import errno
import signal
import sys
from collections import deque
from typing import TYPE_CHECKING, Final, Self

from runlane.worker.testing.connection import Connection
from runlane.worker.testing.scripts import SCRIPTS

if TYPE_CHECKING:
    from types import TracebackType

    from runlane.worker.testing.script import ChatRequest, Script

HOST: Final = "127.0.0.1"
_PR_SET_PDEATHSIG: Final = 1


class ModelServer:
    """Chat completions on a port of the loopback interface, answered by a script.

    Args:
        script: Decides every answer.
        port: Where to listen; 0 takes a free port.
        requests_max: How many requests are kept.

    Attributes:
        requests: The latest requests that reached the script, oldest first.
        abandoned: Replies whose client went away before their end.
        connections: Those that are open.
    """

    def __init__(self, script: Script, *, port: int = 0, requests_max: int = 1000) -> None:
        self.script = script
        self.requests: deque[ChatRequest] = deque(maxlen=requests_max)
        self.abandoned = 0
        self.connections: set[Connection] = set()
        self._port = port

    @property
    def url(self) -> str:
        """What `MODEL_URL` is to be."""
        return f"http://{HOST}:{self._port}/v1"

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            OSError: The port is in use.
        """
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: Connection(self), HOST, self._port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise OSError(error.errno, f"port {self._port} of {HOST} is in use") from error
            raise
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        await asyncio.gather(*[connection.abort() for connection in self.connections])
        await self._server.wait_closed()


async def serve(script: Script, *, port: int) -> None:
    """Print the URL and serve until SIGTERM or SIGINT.

    Raises:
        OSError: The port is in use.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with ModelServer(script, port=port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> None:
    """Run the server as a process."""
    parser = argparse.ArgumentParser(prog="model_server", description="A scripted model server.")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free port")
    parser.add_argument("--script", choices=sorted(SCRIPTS), default="directives")
    options = parser.parse_args()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    try:
        asyncio.run(serve(SCRIPTS[options.script], port=options.port))
    except OSError as error:
        sys.exit(f"model_server: {error.strerror}")


if __name__ == "__main__":
    main()
