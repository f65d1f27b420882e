"""Events of one attempt on their way to the sink of its agent, which slows and harms no run."""

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, Self

import structlog
from msgspec.structs import replace

from runlane.journal.lease import Lease
from runlane.journal.transitions import Appended, Finished
from runlane.journal.transitions.entries import Written
from runlane.journal.wire.codec import decode_body
from runlane.journal.wire.events import Event, EventKind, event_of
from runlane.journal.wire.records import AnyBody, Record
from runlane.journal.wire.versions import plain_name
from runlane.worker.events import AgentEventSink, AgentEventSinkError
from runlane.worker.session.trail import revision_of
from runlane.worker.tools.execution import asked_to_stop

PROVISIONAL_WAITING_MAX: Final = 1_000
"""When so many events wait for a sink, further provisional ones are left out."""

WAITING_MAX: Final = 10_000
"""A sink that more events than that wait for hears nothing more of the run."""

EVENT_SINK_DRAIN_S: Final = 5.0
"""How long a sink may take over what is left when the attempt has ended."""

logger = structlog.get_logger(__name__)


class Place:
    """Where events belong that are on their way to the server; a context manager.

    Attributes:
        events: What subscribers were given by the end of the block; nothing if it was refused.
        settled: Whether the block has ended.
    """

    def __init__(self, delivery: "Delivery") -> None:
        self.events: Sequence[Event] = ()
        self.settled = False
        self._delivery = delivery

    def wrote(
        self,
        entries: Sequence[AnyBody | Event | Written],
        outcome: Appended | Finished,
        *,
        lost_head: str = "",
    ) -> None:
        """Note what came of a write.

        Args:
            entries: What was to be written, oldest first; a record is one of `Written` if it was
                written before, and lost.
            outcome: What came of it.
            lost_head: The last record before that, if it was lost.
        """
        if not self._delivery.wanted:
            return
        lease = self._delivery.lease
        self.events = list(_events_of(lease, entries, outcome))
        if lost_head:
            self.events.insert(0, _reset(lease, lost_head))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.settled = True
        self._delivery.take()


class Delivery:
    """Brings events to a sink, in order and at its pace.

    Args:
        sink: Who hears them; None if nobody does.
        lease: The attempt.

    Attributes:
        lease: The attempt.
        wanted: Whether anybody hears what comes.
        task: What brings it; it ends once the sink has had everything, or is given up.
    """

    def __init__(self, sink: AgentEventSink | None, lease: Lease) -> None:
        self.lease = lease
        self.wanted = sink is not None
        self.task = None if sink is None else asyncio.create_task(self._deliver(sink))
        self._places: deque[Place] = deque()
        self._waiting: deque[Event] = deque()
        self._news = asyncio.Event()
        self._revision = 0
        self._left_out = 0

    def place(self) -> Place:
        """Return the place of what is sent next: behind all that was sent before."""
        place = Place(self)
        if self.wanted:
            self._places.append(place)
        return place

    def take(self) -> None:
        """Take in what has settled, as far as nothing before it is still on its way."""
        while self._places and self._places[0].settled:
            for event in self._places.popleft().events:
                self._add(event)
        self._news.set()
        if len(self._waiting) > WAITING_MAX:
            self._give_up("it is too slow")

    def close(self) -> None:
        """Take nothing more in; the sink has `EVENT_SINK_DRAIN_S` for what waits."""
        if self.task is None or not self.wanted:
            return
        self.wanted = False
        self._places.clear()
        self._news.set()
        loop = asyncio.get_running_loop()
        deadline = loop.call_later(EVENT_SINK_DRAIN_S, self._give_up, "it takes too long")
        self.task.add_done_callback(lambda _: deadline.cancel())

    def _add(self, event: Event) -> None:
        if event.count:
            if len(self._waiting) >= PROVISIONAL_WAITING_MAX:
                self._left_out += 1
                return
            event = replace(event, revision=self._revision)
        elif event.committed:
            self._revision = event.revision
        self._waiting.append(event)

    async def _deliver(self, sink: AgentEventSink) -> None:
        said = False
        while await self._is_any_left():
            event = self._waiting.popleft()
            try:
                await sink.emit(event)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as error:  # a SystemExit would end the worker with all its runs
                if isinstance(error, asyncio.CancelledError) and asked_to_stop():
                    raise
                if not said:
                    said = True
                    self._warn("event_sink_failed", error=_name_of(error))
        if self._left_out:
            self._warn("event_sink_behind", left_out=self._left_out)

    async def _is_any_left(self) -> bool:
        while self.wanted and not self._waiting:
            self._news.clear()
            await self._news.wait()
        return bool(self._waiting)

    def _give_up(self, why: str) -> None:
        self._warn("event_sink_given_up", why=why, undelivered=len(self._waiting))
        self.wanted = False
        self._places.clear()
        self._waiting.clear()
        if self.task is not None:
            self.task.cancel()

    def _warn(self, event: str, **facts: object) -> None:
        logger.warning(event, run_id=self.lease.run_id, attempt=self.lease.attempt, **facts)


def _events_of(
    lease: Lease, entries: Sequence[AnyBody | Event | Written], outcome: Appended | Finished
) -> Iterator[Event]:
    """Yield the events of entries that were written, as subscribers hear them."""
    inc = outcome.head.partition("-")[2].partition(".")[0]
    revision = revision_of(outcome.head) - sum(1 for each in outcome.written if each.kind)
    for entry, stored in zip(entries, outcome.written, strict=False):  # a checkpoint may follow
        if isinstance(entry, Event):
            yield entry
            continue
        revision += 1
        record = Record(
            revision=revision,
            record_id=f"{revision}-{inc}.{stored.digest}",
            parent_id="",  # no event tells it
            branch_id=lease.branch_id,
            kind=plain_name(stored.kind),
            at_ms=outcome.at_ms,
            body=decode_body(stored.kind, entry.data) if isinstance(entry, Written) else entry,
        )
        event = event_of(lease.session_id, record)
        if event.kind is not EventKind.CHECKPOINT and event.run_id in ("", lease.run_id):
            yield event


def _reset(lease: Lease, lost_head: str) -> Event:
    return Event(
        session_id=lease.session_id,
        branch_id=lease.branch_id,
        run_id=lease.run_id,
        kind=EventKind.JOURNAL_RESET,
        at_ms=time.time_ns() // 1_000_000,
        attempt=lease.attempt,
        payload={"lost": lost_head},
    )


def _name_of(error: BaseException) -> str:
    """Return what may be logged of an error: its text may quote the event."""
    return str(error) if isinstance(error, AgentEventSinkError) else type(error).__name__
