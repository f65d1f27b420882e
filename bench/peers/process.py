"""The bench's side: peers that answer one question at a time."""

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self

from bench.lab import ROOT, BenchError
from bench.peers.environment import Needs, PeerAbsentError, environment_of

_ANSWER_TIMEOUT_S: Final = 600.0


class Peer:
    """One peer's process."""

    def __init__(self, name: str, process: Process) -> None:
        self._name = name
        self._process = process

    async def ask(self, do: str, **arguments: Any) -> Any:
        """Return the answer to a question; `do` names a handler of the peer's module.

        Raises:
            BenchError: The peer ended instead, or took more than ten minutes.
        """
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answered is not None
        asked.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                line = await answered.readline()
        except TimeoutError as error:
            raise BenchError(f"{self._name} has not answered {do!r} in time") from error
        if not line:
            raise BenchError(f"{self._name} ended at {do!r}; its own words are above")
        return json.loads(line)


class Peers:
    """The peers of one bench, as a context manager that ends their processes.

    Attributes:
        absent: Why a peer cannot be had here, by name.
    """

    def __init__(self) -> None:
        self.absent: dict[str, str] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def open(self, needs: Needs, *names: str) -> Peer | None:
        """Start a peer, which may stand for several names; None if it cannot be had here."""
        try:
            python = await asyncio.to_thread(environment_of, needs)
        except PeerAbsentError as error:
            self.absent |= dict.fromkeys(names, str(error))
            return None
        process = await asyncio.create_subprocess_exec(
            python, "-m", needs.module, cwd=ROOT, stdin=PIPE, stdout=PIPE
        )
        self._stack.push_async_callback(_end, process)
        return Peer(names[0], process)


async def _end(process: Process) -> None:
    """End a peer with its standard input; one that computes is killed."""
    if process.returncode is None:
        process.kill()
    await process.wait()
