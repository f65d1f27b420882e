"""An empty server, a producer and worker processes, for one measurement."""

import asyncio
import os
import subprocess
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct

from bench.marks import Mark, Marks
from bench.systems.protocol import Producer, Work
from bench.worker import AnySystem, command
from runlane.journal.server import Server, launch

ROOT: Final = Path(__file__).parents[1]
"""The checkout."""

_READY_TIMEOUT_S: Final = 60.0
_WATCH_S: Final = 0.005


class BenchError(Exception):
    """A measurement did not come about; the message says why."""


class Lab(Struct, frozen=True, kw_only=True):
    """What one measurement works with; nothing of an earlier one is left in it.

    Attributes:
        system: What is measured.
        server: A server with an append-only file, flushed every second, and no data.
        producer: Connected to it.
        marks: Where jobs mark their beginnings.
        folder: Holds all files of the measurement.
        workers: The worker processes so far, by pid.
    """

    system: AnySystem
    server: Server
    producer: Producer
    marks: Marks
    folder: Path
    workers: dict[int, "subprocess.Popen[bytes]"]

    async def start_workers(self, count: int, *, slots: int, hang: bool = False) -> None:
        """Start worker processes, which begin to take jobs together when all are up."""
        work = Work(url=self.server.url, marks=str(self.folder / "marks"), slots=slots, hang=hang)
        for _ in range(count):
            process = self._start(command(self.system, work))
            self.workers[process.pid] = process
        await self.until(lambda: self.marks.lined_up() == count, f"{count} workers to be up")
        self.marks.let_go()

    async def enqueue_all(self, count: int, *, in_flight: int) -> None:
        """Ask for jobs 0 to `count` - 1, `in_flight` calls at a time."""
        numbers = iter(range(count))

        async def one_after_another() -> None:
            for number in numbers:
                await self.producer.enqueue(number)

        await asyncio.gather(*(one_after_another() for _ in range(in_flight)))

    async def mark_of(self, number: int, *, begun: int = 1, timeout_s: float = 60) -> Mark:
        """Return the mark of a job once it has begun so many times."""

        def found() -> list[Mark]:
            return [mark for mark in self.marks.jobs() if mark.number == number]

        await self.until(lambda: len(found()) >= begun, f"job {number} to begin", timeout_s)
        return found()[begun - 1]

    async def until(
        self, condition: Callable[[], bool], what: str, timeout_s: float = _READY_TIMEOUT_S
    ) -> None:
        """Return once the condition holds.

        Raises:
            BenchError: It did not within the time, or a worker ended by itself.
        """
        end = time.monotonic() + timeout_s
        while not condition():
            self.check_workers(what)
            if time.monotonic() > end:
                raise self._failure(what, f"{timeout_s:g} s have passed")
            await asyncio.sleep(_WATCH_S)

    def check_workers(self, what: str) -> None:
        """Raise if a worker that is waited for ended by itself.

        Raises:
            BenchError: It did.
        """
        for pid, process in self.workers.items():
            if process.poll() is not None:
                raise self._failure(what, f"worker {pid} ended")

    def kill(self, pid: int) -> None:
        """Kill a worker process, as a machine that fails would."""
        with self.workers.pop(pid) as process:
            process.kill()

    def workers_cpu_s(self) -> float:
        """Return the CPU time that the worker processes have taken so far."""
        return sum(map(cpu_s, self.workers))

    def _start(self, words: list[str]) -> "subprocess.Popen[bytes]":
        with (self.folder / "workers.log").open("ab") as log:
            return subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def _failure(self, what: str, why: str) -> BenchError:
        log = (self.folder / "workers.log").read_text(errors="replace")
        return BenchError(f"waiting for {what}: {why}\n{log[-2000:]}")


@asynccontextmanager
async def lab(system: AnySystem) -> AsyncGenerator[Lab]:
    """Set everything up for one measurement, and take it down."""
    with TemporaryDirectory(prefix="bench-") as name, launch(Path(name) / "server") as server:
        marks = Marks(Path(name) / "marks")
        workers: dict[int, subprocess.Popen[bytes]] = {}
        async with system.connect(server.url) as producer:
            made = Lab(
                system=system,
                server=server,
                producer=producer,
                marks=marks,
                folder=Path(name),
                workers=workers,
            )
            try:
                yield made
            finally:
                for pid in list(workers):
                    made.kill(pid)
                marks.close()


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process with all its threads so far; Linux only."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
