"""Keep the leases of all runs of this process, whatever the event loop is busy with."""

import asyncio
import threading
import time
from typing import Final

import structlog
from redis.exceptions import RedisError

from runlane.journal.keys import Keys
from runlane.journal.link import blocking_client_for
from runlane.journal.transitions import Renewal, renew
from runlane.worker.session.held import HeldLease

WATCH_S: Final = 0.25

logger = structlog.get_logger(__name__)


class LeaseKeeper:
    """Renews in a thread with a connection of its own, every third of a lease.

    A blocked event loop does not lose its leases for that; one that stands still for longer
    than `stall_limit_s` does, on purpose: a hung worker must not keep its runs for ever.

    Args:
        url: The server.
        keys: Names of its keys.
        worker_id: This worker.
        lease_ms: Length of a lease.
        stall_limit_s: How long the event loop may stand still.
    """

    def __init__(
        self, url: str, keys: Keys, *, worker_id: str, lease_ms: int, stall_limit_s: float
    ) -> None:
        self._client = blocking_client_for(url, timeout_s=max(lease_ms / 3000, 0.5))
        self._keys = keys
        self._worker_id = worker_id
        self._lease_ms = lease_ms
        self._stall_limit_s = stall_limit_s
        self._held: dict[str, HeldLease] = {}
        self._lock = threading.Lock()
        self._ticked_at = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew_for_ever, name="leases", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure = ""
        self._watch: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to renew; call it in the event loop that executes the runs."""
        self._loop = asyncio.get_running_loop()
        self._watch = asyncio.create_task(self._tick_for_ever())
        self._thread.start()

    async def stop(self) -> None:
        """Stop renewing."""
        self._stop.set()
        if self._watch is not None:
            self._watch.cancel()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)
        self._client.close()

    def add(self, held: HeldLease) -> None:
        """Keep a lease from now on; an earlier one of the same run is lost."""
        with self._lock:
            before = self._held.get(held.lease.run_id)
            self._held[held.lease.run_id] = held
        if before is not None:
            before.lose("this worker has claimed the run again")

    def remove(self, held: HeldLease) -> None:
        """Keep it no longer."""
        with self._lock:
            if self._held.get(held.lease.run_id) is held:
                del self._held[held.lease.run_id]

    def find(self, run_id: str) -> HeldLease | None:
        """Return the lease of a run, if this process holds it."""
        return self._held.get(run_id)

    async def confirm(self, held: list[HeldLease]) -> None:
        """Renew leases at once: those of a claim whose reply was long on its way."""
        await asyncio.to_thread(self._renew, held)

    async def _tick_for_ever(self) -> None:
        """Show the thread that the loop runs, and stop runs whose lease has ended."""
        while True:
            self._ticked_at = time.monotonic()
            for held in list(self._held.values()):
                if held.remaining_s <= 0:
                    held.lose("the lease ended before it could be renewed")
            await asyncio.sleep(WATCH_S)

    def _renew_for_ever(self) -> None:
        pause_s = self._lease_ms / 3000
        while not self._stop.wait(pause_s):
            pause_s = self._lease_ms / 3000
            stalled_s = time.monotonic() - self._ticked_at
            if stalled_s > self._stall_limit_s:
                logger.error("event_loop_stalled", seconds=round(stalled_s, 1))
                continue
            with self._lock:
                held = [each for each in self._held.values() if not each.lost]
            if not self._renew(held):
                pause_s = self._lease_ms / 30_000

    def _renew(self, held: list[HeldLease]) -> bool:
        """Extend leases; return whether the server answered."""
        sent_at = time.monotonic()
        try:
            renewal = renew(
                self._client,
                self._keys,
                worker_id=self._worker_id,
                lease_ms=self._lease_ms,
                leases=[each.lease for each in held],
            )
        except (RedisError, OSError) as error:
            if str(error) != self._failure:
                self._failure = str(error)
                logger.warning("renewal_failed", error=self._failure)
            return False
        self._failure = ""
        for each in held:
            if each.lease.run_id not in renewal.lost:
                each.ends_at = sent_at + self._lease_ms / 1000
        if renewal.lost or renewal.aborted:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._apply, held, renewal)
        return True

    def _apply(self, held: list[HeldLease], renewal: Renewal) -> None:
        for each in held:
            run_id = each.lease.run_id
            if run_id in renewal.lost:
                each.lose("another worker holds the lane")
            elif run_id in renewal.aborted:
                each.cancellation.cancel(renewal.aborted[run_id])
