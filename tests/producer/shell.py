"""The command line, as processes."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import NamedTuple

from tests.producer.support import DEADLINE_S

COMMAND = (sys.executable, "-c", "from runlane.producer.cli import main; main()")


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


class Shell:
    """Starts the command in a deployment."""

    def __init__(self, url: str, prefix: str, folder: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if "RUNLANE" not in name}
        self.environ = {**kept, "RUNLANE_REDIS_URL": url, "RUNLANE_PREFIX": prefix}
        self.folder = folder
        self.started: list[Process] = []

    async def start(
        self, *words: str, stdin: bool = False, stdout: int = PIPE, stderr: int = PIPE
    ) -> Process:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *words,
            env=self.environ,
            cwd=self.folder,
            stdin=PIPE if stdin else DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )
        self.started.append(process)
        return process

    async def close(self) -> None:
        """End what a failed test has left behind."""
        for process in self.started:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    async def run(self, *words: str) -> Outcome:
        return await self.end(await self.start(*words))

    async def end(self, process: Process, given: bytes | None = None) -> Outcome:
        async with asyncio.timeout(DEADLINE_S):
            out, err = await process.communicate(given)
        assert process.returncode is not None
        return Outcome(process.returncode, (out or b"").decode(), err.decode())
