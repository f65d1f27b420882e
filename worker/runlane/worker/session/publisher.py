"""Provisional events of one run: coalesced, in order, and never after the lease is lost."""

import asyncio
import time
from typing import Any, Final

import structlog

from runlane.journal.errors import RunlaneError, WriteRefusedError
from runlane.journal.partition import Partition
from runlane.journal.transitions import publish
from runlane.journal.wire.events import Event, EventKind
from runlane.worker.session.held import HeldLease
from runlane.worker.session.sinks import Delivery

COALESCE_S: Final = 0.05
COALESCE_BYTES: Final = 256

logger = structlog.get_logger(__name__)


class Publisher:
    """Collects events until the next record, 50 ms, or 256 bytes of text, whatever comes first.

    What waits here when records are committed travels with them, in one round trip.
    """

    def __init__(self, partition: Partition, held: HeldLease, delivery: Delivery) -> None:
        self._partition = partition
        self._held = held
        self._delivery = delivery
        self._waiting: list[Event] = []
        self._count = 0
        self._deltas: list[str] = []
        self._delta_bytes = 0
        self._turn = 0
        self._offset = 0
        self._partial = ""
        self._timer: asyncio.TimerHandle | None = None
        self._sending: set[asyncio.Task[None]] = set()

    def emit(self, kind: EventKind, turn: int, payload: dict[str, Any] | None = None) -> None:
        """Add an event."""
        self._close_text()
        self._add(kind, turn, payload or {})
        self._soon()

    def say(self, turn: int, delta: str) -> None:
        """Add text of the model."""
        if not delta:
            return
        if turn != self._turn:
            self._turn, self._offset = turn, 0
        self._deltas.append(delta)
        self._delta_bytes += len(delta.encode())
        if self._delta_bytes >= COALESCE_BYTES:
            self._flush()
        else:
            self._soon()

    async def take(self) -> list[Event]:
        """Return what waits, to travel with records; what was sent before is on its way."""
        self._close_text()
        self._stop_timer()
        if self._sending:
            await asyncio.sleep(0)  # a task that was just made puts its command before ours
        waiting, self._waiting, self._partial = self._waiting, [], ""
        return waiting

    def committed(self) -> None:
        """Count from 1 again: there is a new last record."""
        self._count = 0

    async def close(self) -> None:
        """Stop; what still waits is dropped."""
        self._stop_timer()
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    def _add(self, kind: EventKind, turn: int, payload: dict[str, Any]) -> None:
        self._count += 1
        lease = self._held.lease
        self._waiting.append(
            Event(
                session_id=lease.session_id,
                branch_id=lease.branch_id,
                run_id=lease.run_id,
                kind=kind,
                at_ms=time.time_ns() // 1_000_000,
                attempt=lease.attempt,
                turn=turn,
                payload=payload,
                count=self._count,
            )
        )

    def _close_text(self) -> None:
        if not self._deltas:
            return
        text = "".join(self._deltas)
        self._deltas, self._delta_bytes = [], 0
        self._add(
            EventKind.ASSISTANT_TEXT_DELTA, self._turn, {"delta": text, "offset": self._offset}
        )
        self._offset += len(text)
        self._partial += text

    def _soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(COALESCE_S, self._flush)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flush(self) -> None:
        self._stop_timer()
        self._close_text()
        events, self._waiting = self._waiting, []
        text, self._partial = self._partial, ""
        if events:
            task = asyncio.create_task(self._send(events, text, self._turn))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, events: list[Event], text: str, turn: int) -> None:
        with self._delivery.place() as place:
            try:
                await publish(self._partition, self._held.lease, events, text=text, turn=turn)
                place.events = events
            except WriteRefusedError as error:
                self._held.lose(str(error))
            except RunlaneError as error:
                logger.info("events_dropped", run_id=self._held.lease.run_id, error=str(error))
