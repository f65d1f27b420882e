"""What the demo does to its workers, and when: each fault waits for the worst moment."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from runlane.producer.client import Client
from runlane.worker.demo.fleet import Fleet, WorkerProcess, WorkerState
from runlane.worker.demo.ledger import Ledger, under_way
from runlane.worker.demo.observed import Drain, Kill, Observed
from runlane.worker.demo.view import View

REFUND_WAIT_S: Final = 15.0
"""After this long without a refund (a real model may make none) the busiest worker will do."""
_POLL_S: Final = 0.01


class Faults:
    """Kills a worker and drains another one, each in the middle of a refund.

    Args:
        fleet: The workers.
        client: Tells who holds which run.
        ledger: Tells who is in the middle of a refund.
        observed: Where everything is noted.
        view: Hears what is done.
    """

    def __init__(
        self, fleet: Fleet, client: Client, ledger: Ledger, observed: Observed, view: View
    ) -> None:
        self._fleet = fleet
        self._client = client
        self._ledger = ledger
        self._observed = observed
        self._view = view

    async def inject(self) -> None:
        """Kill one worker, start another, and drain a third one once the takeover is done.

        Raises:
            DemoError: The replacement did not start.
        """
        await _until(lambda: all(trace.attempts for trace in self._observed.sessions))
        originals = list(self._fleet.workers)
        await self._kill(*await self._worker_in_refund(originals))
        replacement = self._fleet.start()
        starting = asyncio.create_task(replacement.ready())
        self._view.say(f"{replacement.name} (pid {replacement.pid}) starts in its place")
        await self._takeover()
        await self._drain(*await self._worker_in_refund(originals))
        await starting

    async def _worker_in_refund(
        self, workers: list[WorkerProcess]
    ) -> tuple[WorkerProcess, str | None]:
        """Return a worker that has just begun a refund, and the operation key of that."""
        before = {entry.operation_key for entry in self._ledger.read()}
        deadline = time.monotonic() + REFUND_WAIT_S
        while time.monotonic() < deadline and self._observed.running_count:
            serving = {each.pid: each for each in _serving(workers)}
            for entry in under_way(self._ledger.read()):
                if entry.operation_key not in before and entry.pid in serving:
                    return serving[entry.pid], entry.operation_key
            await asyncio.sleep(_POLL_S)
        return max(_serving(workers), key=lambda each: self._observed.held_by(each.worker_id)), None

    async def _kill(self, worker: WorkerProcess, refund: str | None) -> None:
        worker.kill()
        at_s = time.monotonic()
        held = await self._runs_of(worker)
        self._observed.kill = Kill(worker_id=worker.worker_id, at_s=at_s, held=held, refund=refund)
        self._view.say(
            f"SIGKILL: {worker.name} (pid {worker.pid}){_moment(refund)}; runs held: {len(held)}"
        )

    async def _runs_of(self, worker: WorkerProcess) -> tuple[str, ...]:
        open_runs = [
            run_id
            for trace in self._observed.sessions
            for run_id in trace.accepted
            if run_id not in trace.results
        ]
        infos = await asyncio.gather(*(self._client.status(run_id) for run_id in open_runs))
        return tuple(info.run_id for info in infos if info.worker == worker.worker_id)

    async def _takeover(self) -> None:
        kill = self._observed.kill
        assert kill is not None
        await _until(lambda: len(self._observed.takeovers()) == len(kill.held))
        self._view.say(
            "everything that it held goes on at other workers, "
            f"{time.monotonic() - kill.at_s:.1f} s after the kill"
        )

    async def _drain(self, worker: WorkerProcess, refund: str | None) -> None:
        worker.drain()
        at_s = time.monotonic()
        self._view.say(f"SIGTERM: {worker.name} (pid {worker.pid}){_moment(refund)}; it drains")
        await _until(lambda: worker.exit_code is not None)
        assert worker.exit_code is not None
        self._observed.drain = Drain(
            worker_id=worker.worker_id, at_s=at_s, exit_code=worker.exit_code
        )
        self._view.say(
            f"{worker.name} ended by itself with exit code {worker.exit_code}, "
            f"{time.monotonic() - at_s:.1f} s after the signal"
        )


def _serving(workers: list[WorkerProcess]) -> list[WorkerProcess]:
    return [each for each in workers if each.state is WorkerState.SERVING]


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 (an ending process sets no event)
        await asyncio.sleep(_POLL_S)


def _moment(refund: str | None) -> str:
    return ", in the middle of a refund" if refund else ""
