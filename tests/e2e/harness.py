"""Real worker processes, as a fleet that always ends with its test."""

import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from redis.asyncio import Redis
from tests.e2e.ledger import Ledger
from tests.e2e.waiting import until

from runlane.journal.keys import Keys
from runlane.journal.link import client_for
from runlane.journal.server import trampoline

ROOT: Final = Path(__file__).parents[2]
RUNLANE: Final = str(Path(sysconfig.get_path("scripts")) / "runlane")
APP: Final = "tests.e2e.apps:app"
LOG_CHARS_MAX: Final = 6000
END_S: Final = 10.0

fleets: Final[list["Fleet"]] = []
"""Those that are open: a test that fails shows their logs."""


def environment(**values: str) -> dict[str, str]:
    """Return the environment of a process, free of what the developer has set for runlane."""
    ours = ("RUNLANE_", "MODEL_", "LLM_", "CHAT_MODEL")
    rest = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**rest, **values}


@dataclass
class WorkerProcess:
    """One `runlane worker` process.

    Attributes:
        log: Where its output goes.
        agents: What it serves.
    """

    process: subprocess.Popen[bytes]
    log: Path
    agents: tuple[str, ...]

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def holds(self, worker_id: str | None) -> bool:
        """Return whether this is the worker that a run names."""
        return f"-{self.pid}-" in (worker_id or "")

    def logged(self, event: str) -> int:
        """Return how many log lines name this event."""
        return self.text.count(f'"event": "{event}"')

    async def until_logged(self, event: str) -> None:
        await until(lambda: self.logged(event) > 0, f"worker {self.pid} logs {event}")

    async def ended(self) -> int:
        """Wait for the end of the process and return its exit code."""
        await until(lambda: not self.alive, f"worker {self.pid} ends")
        return self.process.wait()

    def destroy(self) -> None:
        if self.alive:
            self.kill()  # this ends a stopped process too
        self.process.wait(END_S)


@dataclass
class Fleet:
    """The workers of one deployment; a context manager that ends them all.

    Attributes:
        url: The server.
        prefix: The deployment.
        directory: Where ledger, gates and logs lie.
        model: Environment that names the model.
        lease_ms: Lease of every worker.
        workers: Every process that was started.
    """

    url: str
    prefix: str
    directory: Path
    model: Mapping[str, str]
    lease_ms: int = 1500
    workers: list[WorkerProcess] = field(default_factory=list[WorkerProcess])

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.directory / "ledger")

    @property
    def keys(self) -> Keys:
        return Keys.of(self.prefix)

    def open(self, gate: str) -> None:
        """Let the tools go on that wait for this gate."""
        (self.directory / gate).touch()

    def launch(
        self, *agents: str, app: str = APP, kill_at: str = "", **settings: Any
    ) -> WorkerProcess:
        """Begin to start a worker."""
        served = agents or ("clerk",)
        log = self.directory / f"worker-{len(self.workers)}.log"
        named = {f"RUNLANE_{name.upper()}": str(value) for name, value in settings.items()}
        fixed = {
            "E2E_AGENTS": ",".join(served),
            "LEDGER": str(self.ledger.path),
            "RUNLANE_REDIS_URL": self.url,
            "RUNLANE_PREFIX": self.prefix,
            "RUNLANE_LEASE_MS": str(self.lease_ms),
            "RUNLANE_LOG_JSON": "1",
            "RUNLANE_KILL_AT": kill_at,
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", trampoline.__file__, "prctl", str(os.getpid())),
                    *(sys.executable, RUNLANE, "worker", app),
                ],
                cwd=ROOT,
                env=environment(**self.model, **fixed, **named),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        worker = WorkerProcess(process, log, served)
        self.workers.append(worker)
        return worker

    async def start(
        self, *agents: str, app: str = APP, kill_at: str = "", **settings: Any
    ) -> WorkerProcess:
        """Start a worker that serves."""
        worker = self.launch(*agents, app=app, kill_at=kill_at, **settings)
        await self.registered(worker)
        return worker

    async def registered(self, *workers: WorkerProcess) -> None:
        """Wait until workers serve."""
        async with client_for(self.url) as redis:
            for worker in workers:
                known = partial(self._knows, redis, worker)
                await until(known, f"worker {worker.pid} registers")

    async def _knows(self, redis: Redis, worker: WorkerProcess) -> bool:
        assert worker.alive, "it ended before it had registered"
        names: list[bytes] = await redis.zrange(self.keys.workers(), 0, -1)
        return any(worker.holds(name.decode()) for name in names)

    def logs(self) -> str:
        """Return the end of each worker's log."""
        return "\n".join(
            f"--- {worker.log.name}: pid {worker.pid}, exit code {worker.process.poll()}\n"
            f"{worker.text[-LOG_CHARS_MAX:]}"
            for worker in self.workers
        )

    def __enter__(self) -> Self:
        fleets.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self.workers:
            worker.destroy()
        fleets.remove(self)
