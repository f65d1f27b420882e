"""The arq worker that executes runs."""

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from signal import Signals
from typing import Any, Final

import msgspec
import structlog
from arq.worker import Worker, func

from runlane.journal.errors import ServerError, ServerUnavailableError, WriteRefusedError
from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition
from runlane.journal.settings import Settings
from runlane.journal.transitions import Claim, ClaimedRun, claim, register, settle
from runlane.journal.transitions.register import WorkerInfo
from runlane.journal.wire.control import ControlInput
from runlane.journal.wire.results import AgentRunResult, RunStatus, StopReason
from runlane.observability import metrics
from runlane.worker.app import Agent, App, AppLoadError
from runlane.worker.control import CancellationToken
from runlane.worker.loop.session import HandBackSignal
from runlane.worker.runner.leases import LeaseKeeper
from runlane.worker.runner.losses import Losses
from runlane.worker.runner.signals import WakeUps, follow_control
from runlane.worker.runner.upkeep import Upkeep
from runlane.worker.session.execute import execute, give_back
from runlane.worker.session.held import HeldLease
from runlane.worker.session.sinks import EVENT_SINK_DRAIN_S

POLL_S: Final = 1.0
"""How long a run may wait that nobody was woken for."""
RETRY_MAX_S: Final = 2.0
LAST_WORDS_S: Final = 5.0
"""How long a stopping worker tries to hand its runs back."""

WORKER_LOST: Final = AgentRunResult(
    status=RunStatus.FAILED,
    stop_reason=StopReason.WORKER_LOST,
    error="its workers died too often without getting further",
)

logger = structlog.get_logger(__name__)


async def _startup(agent: Agent) -> None:
    try:
        await agent.startup()
    except Exception as error:
        raise AppLoadError(
            f"agent {agent.name!r} does not start: {type(error).__name__}: {error}"
        ) from error


async def _claimed_by_lease(ctx: dict[Any, Any]) -> None:
    """The one function that arq knows; `RunlaneWorker` executes what it claims without arq."""


class RunlaneWorker(Worker):
    """Claims runs by lease, executes them side by side, and hands back what it cannot finish.

    It keeps arq's life cycle (run, async_run, close, signals); claiming, renewing and finishing
    are runlane's transitions. The first SIGTERM or SIGINT drains, the second stops at once.

    Args:
        app: The agents to serve.
        url: The Redis server.
        settings: Slots, lease, drain time and the rest.
        handle_signals: Whether SIGTERM and SIGINT are heard.
    """

    def __init__(
        self, app: App, url: str, settings: Settings, *, handle_signals: bool = True
    ) -> None:
        self.app = app
        self.settings = settings
        self.worker_id = f"{socket.gethostname()}-{os.getpid()}-{new_request_id()[:6]}"
        self._url = url
        self._partition = Partition.of(url, settings)
        self._queues = [queue for agent in app.agents.values() for queue in agent.queues]
        self._draining = asyncio.Event()
        self._slot_freed = asyncio.Event()
        keys = self._partition.keys
        super().__init__(
            functions=[func(_claimed_by_lease, name="run")],
            queue_name=keys.queue(self._queues[0]),
            max_jobs=settings.max_runs,
            handle_signals=handle_signals,
            job_serializer=msgspec.msgpack.encode,
            job_deserializer=msgspec.msgpack.decode,
        )
        self._leases = LeaseKeeper(
            url,
            keys,
            worker_id=self.worker_id,
            lease_ms=settings.lease_ms,
            stall_limit_s=settings.stall_limit_s,
        )
        self._wake_ups = WakeUps(url, [keys.wake(queue) for queue in self._queues])
        self._losses = Losses()
        self._deliveries: set[asyncio.Task[None]] = set()
        self._upkeep = Upkeep(self._partition, settings, self.worker_id)

    async def main(self) -> None:
        """Serve until told to stop, then drain; a server that is away is waited for.

        Raises:
            ServerUnsuitableError: The server cannot be used.
            ArchiveMismatchError: The archive is not this deployment's.
            AppLoadError: An agent does not start.
        """
        async with AsyncExitStack() as stack:
            if not await self._reach(lambda: self._partition.open(retry_s=0)):
                return
            if not await self._reach(self._upkeep.check_archive):
                return
            for agent in self.app.agents.values():
                await _startup(agent)
                stack.push_async_callback(agent.shutdown)
            if not await self._reach(lambda: self._register(self.settings.lease_ms, retry_s=0)):
                return
            self._leases.start()
            stack.push_async_callback(self._leases.stop)
            control = asyncio.create_task(
                follow_control(
                    self._url,
                    self._partition.keys.control(self.worker_id),
                    abort=self._abort,
                    lose=self._lose,
                    steer=self._steer,
                )
            )
            stack.callback(control.cancel)
            staying = asyncio.create_task(self._stay_registered())
            stack.callback(staying.cancel)
            upkeep = asyncio.create_task(self._upkeep.run())
            stack.callback(upkeep.cancel)
            logger.info("worker_started", worker_id=self.worker_id, agents=sorted(self.app.agents))
            try:
                await self._serve()
            finally:
                await self._drain()
        logger.info("worker_stopped", worker_id=self.worker_id, runs_ended=self.jobs_complete)

    def handle_sig(self, signum: Signals) -> None:
        """Drain at the first signal; at the second, hand everything back at once."""
        if self._draining.is_set():
            for task in self.tasks.values():
                task.cancel()
        self._draining.set()

    async def close(self) -> None:
        """Close the connections."""
        await self._wake_ups.close()
        await self._partition.close()

    async def _reach(self, request: Callable[[], Awaitable[None]]) -> bool:
        """Repeat a request until the server answers it; return False if told to stop before."""
        delay = 0.1
        while not self._draining.is_set():
            try:
                await request()
            except ServerUnavailableError as error:
                logger.warning("waiting_for_redis", error=str(error))
            else:
                return True
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._draining.wait()
            delay = min(delay * 2, RETRY_MAX_S)
        return False

    async def _register(self, lease_ms: int, *, retry_s: float) -> None:
        await register(
            self._partition,
            worker_id=self.worker_id,
            lease_ms=lease_ms,
            info=WorkerInfo(
                host=socket.gethostname(),
                pid=os.getpid(),
                agents={agent.name: agent.version for agent in self.app.agents.values()},
                max_runs=self.max_jobs,
            ),
            retry_s=retry_s,
        )

    async def _stay_registered(self) -> None:
        """Register again and again: the server may have lost what it knew of this worker."""
        while True:
            await asyncio.sleep(self.settings.lease_ms / 1000)
            if self._draining.is_set():
                return
            try:
                await self._register(self.settings.lease_ms, retry_s=0)
            except ServerError as error:
                logger.info("registration_failed", error=str(error))

    async def _serve(self) -> None:
        stop = asyncio.create_task(self._draining.wait())
        delay = 0.05
        while not stop.done():
            if len(self.tasks) >= self.max_jobs:
                self._slot_freed.clear()
                slot = asyncio.create_task(self._slot_freed.wait())
                await self._wake_ups.wait_for_slot(slot, stop)
                slot.cancel()
                continue
            try:
                claimed = await self._claim(self.max_jobs - len(self.tasks), stop)
                for run_id in claimed.exhausted:
                    await settle(self._partition, run_id, WORKER_LOST)
                    logger.error("run_lost_its_workers", run_id=run_id)
            except ServerError as error:
                logger.warning("claim_failed", error=str(error))
                await asyncio.wait({stop}, timeout=delay)
                delay = min(delay * 2, RETRY_MAX_S)
                continue
            delay = 0.05
            if not claimed.runs:
                await self._wake_ups.wait(min(claimed.wait_s or POLL_S, POLL_S), stop)

    async def _claim(self, slots: int, stop: "asyncio.Task[Any]") -> Claim:
        sent_at = time.monotonic()
        request = asyncio.create_task(
            claim(
                self._partition,
                worker_id=self.worker_id,
                queues=self._queues,
                slots=slots,
                lease_ms=self.settings.lease_ms,
                crashes_max=self.settings.crashes_max,
                crashes_total_max=self.settings.crashes_total_max,
            )
        )
        try:
            await asyncio.wait({request, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:  # told to stop or cancelled: what was claimed meanwhile is to be handed back
            await asyncio.wait({request}, timeout=LAST_WORDS_S)
            if request.done() and request.exception() is None:
                await self._start(request.result().runs, sent_at)
        if not request.done():
            request.cancel()
            raise ServerUnavailableError("the worker stops while the Redis server is away")
        return request.result()

    async def _start(self, runs: Sequence[ClaimedRun], sent_at: float) -> None:
        lease_s = self.settings.lease_ms / 1000
        started = [
            HeldLease(
                lease=run.lease,
                ends_at=sent_at + lease_s,
                cancellation=CancellationToken(),
                draining=self._draining,
            )
            for run in runs
        ]
        if started and time.monotonic() > sent_at + lease_s / 2:
            await self._leases.confirm(started)  # the claim was on its way for long
        for held, run in zip(started, runs, strict=True):
            name = f"{run.lease.run_id}/{run.lease.fence}"
            self._leases.add(held)
            metrics.RUNS_ACTIVE.inc()
            held.task = self.tasks[name] = asyncio.create_task(self._carry_on(held, run.job))
            held.task.add_done_callback(partial(self._ended, name, held))

    def _ended(self, name: str, held: HeldLease, _: "asyncio.Task[None]") -> None:
        self.tasks.pop(name)
        self._leases.remove(held)
        metrics.RUNS_ACTIVE.dec()
        self._slot_freed.set()
        if held.delivering is not None:
            self._deliveries.add(held.delivering)
            held.delivering.add_done_callback(self._deliveries.discard)
        if held.afterwards is not None:
            self._losses.look(held.lease.run_id, held.afterwards)

    async def _carry_on(self, held: HeldLease, job: bytes) -> None:
        lease = held.lease
        log = logger.bind(run_id=lease.run_id, attempt=lease.attempt)
        metrics.ATTEMPTS_STARTED.labels(lease.cause or "first").inc()
        if lease.cause is not None:
            log.info("run_taken_over", cause=lease.cause)
        try:
            result = await execute(
                self._partition, held, job, agents=self.app.agents, worker_id=self.worker_id
            )
        except WriteRefusedError as error:
            metrics.LEASES_LOST.inc()
            log.warning("lease_lost", error=str(error))
        except HandBackSignal:
            await give_back(self._partition, held, retry_s=LAST_WORDS_S)
            log.info("run_handed_back")
        except asyncio.CancelledError:
            await give_back(self._partition, held, retry_s=LAST_WORDS_S)
            log.warning("run_stopped", lost=held.lost)
        except Exception:
            # No hand-back: the end of the lease counts this as a crash, which has a limit.
            self.jobs_failed += 1
            log.exception("attempt_failed")
        else:
            self.jobs_complete += 1
            if result is not None:
                metrics.RUNS_ENDED.labels(lease.queue.partition("@")[0], result.status).inc()
                log.info("run_ended", status=result.status, stop_reason=result.stop_reason)

    def _abort(self, run_id: str, reason: str) -> None:
        held = self._leases.find(run_id)
        if held is not None:
            held.cancellation.cancel(reason)

    def _lose(self, run_id: str, fence: str, reason: str) -> None:
        held = self._leases.find(run_id)
        if held is not None and held.lease.fence == fence:
            held.lose(f"the lane was taken away ({reason})")

    def _steer(self, run_id: str, fence: str, given: ControlInput) -> None:
        held = self._leases.find(run_id)
        if held is not None and held.lease.fence == fence:
            held.steering.add(given)

    async def _drain(self) -> None:
        self._draining.set()
        await self._wake_ups.close()
        logger.info("worker_drains", worker_id=self.worker_id, runs=len(self.tasks))
        await self._until_idle(self.settings.drain_timeout_s)
        for task in self.tasks.values():
            task.cancel()
        await self._until_idle(LAST_WORDS_S + 1)
        await self._losses.stop(LAST_WORDS_S)
        await self._leases.stop()  # each renewal keeps this worker registered
        try:
            await self._register(0, retry_s=1)  # it would expire by itself
        except ServerError as error:
            logger.warning("not_unregistered", error=str(error))
        if self._deliveries:
            await asyncio.wait(self._deliveries, timeout=EVENT_SINK_DRAIN_S + 1)

    async def _until_idle(self, seconds: float) -> None:
        tasks: set[asyncio.Task[Any]] = set(self.tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
