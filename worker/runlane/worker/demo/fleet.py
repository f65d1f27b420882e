"""The worker processes of the demo: started, killed, drained, and never left behind."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal, Self

import msgspec

from runlane.worker.demo.errors import DemoError

START_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 5.0
_POLL_S: Final = 0.05
_READY: Final = '"worker_started"'


class WorkerState(StrEnum):
    """What became of a worker process."""

    STARTING = "starting"
    SERVING = "serving"
    KILLED = "killed"
    DRAINING = "draining"
    DRAINED = "drained"
    DIED = "died"


@dataclass
class WorkerProcess:
    """One worker.

    Attributes:
        name: For people.
        log: What it writes on standard error, one JSON object a line.
        process: The process.
        worker_id: Its name in the journal; empty while it starts.
        fault: What the demo did to it.
    """

    name: str
    log: Path
    process: subprocess.Popen[bytes]
    worker_id: str = ""
    fault: Literal["kill", "drain"] | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self.process.poll()

    @property
    def state(self) -> WorkerState:
        """What it does now."""
        if self.fault == "kill":
            return WorkerState.KILLED
        if self.fault == "drain" and self.exit_code in (None, 0):
            return WorkerState.DRAINING if self.exit_code is None else WorkerState.DRAINED
        if self.exit_code is not None:
            return WorkerState.DIED
        return WorkerState.SERVING if self.worker_id else WorkerState.STARTING

    def kill(self) -> None:
        """End it as a crash would."""
        self.fault = "kill"
        self.process.kill()
        self.process.wait()

    def drain(self) -> None:
        """Ask it to hand back its runs and end."""
        self.fault = "drain"
        self.process.terminate()

    async def ready(self) -> None:
        """Wait until it serves.

        Raises:
            DemoError: It ended instead, or takes too long.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.worker_id:
            lines = self.log.read_text().splitlines()
            if self.exit_code is not None or time.monotonic() > deadline:
                raise DemoError(
                    f"{self.name} did not start: {lines[-1] if lines else 'it said nothing'} "
                    f"(its log is {self.log})"
                )
            for line in lines:
                if _READY in line:
                    self.worker_id = msgspec.json.decode(line)["worker_id"]
            await asyncio.sleep(_POLL_S)


class Fleet:
    """All worker processes; a context manager that ends those that are left.

    Args:
        environ: The environment of each.
        folder: Where their logs go.
    """

    def __init__(self, environ: Mapping[str, str], folder: Path) -> None:
        self.workers: list[WorkerProcess] = []
        self._environ = dict(environ)
        self._folder = folder

    def start(self) -> WorkerProcess:
        """Start one more worker; it is not ready yet."""
        name = f"worker {len(self.workers) + 1}"
        log = self._folder / f"{name.replace(' ', '-')}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 (it is ourselves)
                [sys.executable, "-m", "runlane.worker.demo.worker_process", str(os.getpid())],
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # the terminal's Ctrl-C is for this process
            )
        worker = WorkerProcess(name, log, process)
        self.workers.append(worker)
        return worker

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self.workers:
            worker.process.terminate()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for worker in self.workers:
            try:
                worker.process.wait(max(deadline - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
