"""Events of a session: replayed from the journal, then live; no gap, no duplicate, in order.

A subscriber listens first and reads the journal afterwards. Whatever it hears is compared with
its position: what it has is dropped, and what lies between is read from the journal. After a lost
connection it does the same again, and after a silence it asks whether it missed anything.

Each read begins with the last record that the subscriber has. If the journal holds another one
there, or none, then the server has lost records: the subscriber gets `journal_reset`, and
everything from the beginning.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator
from typing import Final

from msgspec import Struct

from runlane.journal.partition import Partition
from runlane.journal.reader import PAGE, event_of_message, read_page, record_of_message
from runlane.journal.wire.events import Event, EventKind, event_of
from runlane.producer.admission import revision_of
from runlane.producer.hub import Hub, Signal
from runlane.producer.position import Place, Position
from runlane.producer.runs import RunPlace

IDLE_S: Final = 1.0
"""After this long without a message the server is asked how far the session is."""


class _PartialText(Struct, frozen=True):
    """What the model has said in the turn that a run is in."""

    place: Place
    text: str


class Subscription:
    """The events of a session, or of one run of it, for one reader.

    It goes on while the server is away, for as long as it takes.
    """

    def __init__(
        self,
        partition: Partition,
        session_id: str,
        *,
        after: str | None,
        run: RunPlace | None = None,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            partition: Where the session lives.
            session_id: The session.
            after: A checked cursor: go on after it. None begins at the beginning.
            run: The only run that is asked for; None for all.
        """
        self._partition = partition
        self._session_id = session_id
        self._run = run
        self._position = self._position_after(after)

    async def follow(self, hub: Hub) -> AsyncGenerator[Event, None]:
        """Yield all events, live ones included, without end.

        Raises:
            UndecodableError: A record is damaged or of a newer version.
            ServerUnsuitableError: The server refuses to serve them.
        """
        with hub.join(self._partition.keys.events(self._session_id)) as feed:
            while True:
                message = await feed.next(IDLE_S)
                heard, needed = _parse(self._session_id, message)
                if (
                    message is Signal.RESYNC
                    or needed > self._position.revision
                    or (message is Signal.IDLE and await self._is_behind())
                ):
                    async for event in self.replay():
                        yield event
                if message is Signal.RESYNC:
                    async for event in self._join_running_turns():
                        yield event
                if heard is not None:
                    for event in await self._news_in(heard):
                        yield event

    async def replay(self) -> AsyncGenerator[Event, None]:
        """Yield the committed events from the position to the end of the journal.

        Raises:
            UndecodableError: A record is damaged or of a newer version.
            ServerUnsuitableError: The server refuses to serve them.
        """
        at_end = False
        while not at_end:
            known = self._position.cursor
            after = self._position.revision - (1 if known else 0)
            page = await read_page(
                self._partition, self._session_id, after=after, count=PAGE, retry_s=math.inf
            )
            at_end = len(page) < PAGE
            if known and (not page or page[0].record_id != known):
                self._position = self._position_after(None)
                yield self._reset(known)
                at_end = False
                continue
            for record in page:
                event = event_of(self._session_id, record)
                self._position.passed(event)
                if record.record_id != known and self._wants(event):
                    yield event

    async def _join_running_turns(self) -> AsyncGenerator[Event, None]:
        """Yield what the model has said in turns that are under way."""
        runs = [
            (run_id, branch_id)
            for run_id, branch_id in self._position.open_runs()
            if self._run is None or run_id == self._run.run_id
        ]
        texts = await asyncio.gather(*(self._partial_text(run_id) for run_id, _ in runs))
        if not any(texts):
            return
        async for event in self.replay():  # what was committed before the texts were read
            yield event
        for (run_id, branch_id), partial in zip(runs, texts, strict=True):
            if partial is None:
                continue
            delta = self._delta(partial, run_id, branch_id, self._position.revision)
            admitted = self._position.admit(delta)
            if admitted is not None:
                yield admitted

    async def _news_in(self, heard: Event) -> list[Event]:
        """Return what is new in a live event, once everything before it was given."""
        if heard.committed:
            if heard.revision != self._position.revision + 1:
                return []
            self._position.passed(heard)
            return [heard] if self._wants(heard) else []
        if not self._wants(heard):
            return []
        events = [heard]
        if self._position.misses_text_before(heard):
            partial = await self._partial_text(heard.run_id)
            if partial is not None and partial.place == (heard.attempt, heard.turn):
                delta = self._delta(partial, heard.run_id, heard.branch_id, heard.revision)
                events.insert(0, delta)
        return [event for event in map(self._position.admit, events) if event is not None]

    async def _is_behind(self) -> bool:
        key = self._partition.keys.session(self._session_id)
        revision: bytes | None = await self._partition.call("HGET", key, "rev", retry_s=math.inf)
        return int(revision or 0) != self._position.revision

    async def _partial_text(self, run_id: str) -> _PartialText | None:
        key = self._partition.keys.partial(run_id)
        stored: bytes | None = await self._partition.call("GET", key, retry_s=math.inf)
        if stored is None:
            return None
        place, _, text = stored.decode().partition(" ")
        attempt, _, turn = place.partition(":")
        return _PartialText(place=(int(attempt), int(turn)), text=text)

    def _delta(self, partial: _PartialText, run_id: str, branch_id: str, revision: int) -> Event:
        attempt, turn = partial.place
        return Event(
            session_id=self._session_id,
            branch_id=branch_id,
            run_id=run_id,
            kind=EventKind.ASSISTANT_TEXT_DELTA,
            at_ms=_now_ms(),
            attempt=attempt,
            turn=turn,
            payload={"delta": partial.text, "offset": 0},
            revision=revision,
            count=1,
        )

    def _reset(self, lost: str) -> Event:
        return Event(
            session_id=self._session_id,
            branch_id="",
            run_id="",
            kind=EventKind.JOURNAL_RESET,
            at_ms=_now_ms(),
            payload={"lost": lost},
        )

    def _position_after(self, cursor: str | None) -> Position:
        if cursor is not None:
            position = Position(revision_of(cursor), cursor)
        else:
            position = Position(revision_of(self._run.queued_id) - 1 if self._run else 0)
        if self._run is not None:
            position.watch(self._run.run_id, self._run.branch_id)
        return position

    def _wants(self, event: Event) -> bool:
        if event.kind is EventKind.CHECKPOINT:  # it tells nothing new
            return False
        if self._run is None:
            return True
        return (event.run_id, event.branch_id) == (self._run.run_id, self._run.branch_id)


def _parse(session_id: str, message: bytes | Signal) -> tuple[Event | None, int]:
    """Return the event in a live message, and the revision that has its place right before it."""
    if isinstance(message, Signal):
        return None, 0
    letter, content = message[:1], message[1:]
    if letter == b"R":
        event = event_of(session_id, record_of_message(content))
        return event, event.revision - 1
    if letter == b"P":
        event = event_of_message(content)
        return event, event.revision
    return None, int(content.partition(b"-")[0])  # only the number of a large record


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
