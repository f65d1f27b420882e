"""What a subscriber has been given, and so what it may still be given. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from runlane.journal.wire.events import Event, EventKind

RUNS_REMEMBERED: Final = 1000
"""More runs than can lie among the unread messages of one listener."""

Place = tuple[int, int]
"""Attempt and turn."""

_OF_THE_QUEUE: Final = (
    EventKind.RUN_QUEUED,
    EventKind.ABORT_REQUESTED,
    EventKind.LEASE_STOLEN,
)


@dataclass(slots=True)
class _Run:
    """One run, as far as a subscriber has got.

    Attributes:
        revision: Of the last record that its worker wrote; 0 if none was passed.
        place: Attempt and turn of that record.
        ended: Whether its end was passed.
        text_place: Attempt and turn of the text that was given last.
        text_length: Characters of that text that were given.
    """

    revision: int = 0
    place: Place = (0, 0)
    ended: bool = False
    text_place: Place = (0, 0)
    text_length: int = 0


class Position:
    """Where a subscriber stands in a session.

    Attributes:
        revision: Of the last record that it passed.
        cursor: Record id of that record; None if it began there without having read it.
    """

    def __init__(self, revision: int = 0, cursor: str | None = None) -> None:
        self.revision = revision
        self.cursor = cursor
        self._runs: dict[tuple[str, str], _Run] = {}

    def watch(self, run_id: str, branch_id: str) -> None:
        """Count a run among the open ones though none of its records was passed."""
        self._run(run_id, branch_id)

    def passed(self, event: Event) -> None:
        """Go on to a committed event: it was given, or left out as not asked for."""
        self.revision = event.revision
        self.cursor = event.cursor
        if event.kind in _OF_THE_QUEUE or not event.run_id:
            return
        run = self._run(event.run_id, event.branch_id)
        run.revision = event.revision
        run.place = (event.attempt, event.turn)
        run.ended = event.terminal

    def open_runs(self) -> Iterator[tuple[str, str]]:
        """Yield run and branch of those that have begun and not ended."""
        for place, run in self._runs.items():
            if not run.ended:
                yield place

    def misses_text_before(self, event: Event) -> bool:
        """Return whether a text delta continues text that was not given."""
        if event.kind is not EventKind.ASSISTANT_TEXT_DELTA:
            return False
        run = self._run(event.run_id, event.branch_id)
        given = run.text_length if run.text_place == (event.attempt, event.turn) else 0
        return bool(event.payload["offset"] > given)

    def admit(self, event: Event) -> Event | None:
        """Return what is new in a provisional event; None if a later record made it stale."""
        run = self._run(event.run_id, event.branch_id)
        if run.ended or event.revision < run.revision:
            return None
        if event.kind is not EventKind.ASSISTANT_TEXT_DELTA:
            return event
        return _new_text(run, event)

    def _run(self, run_id: str, branch_id: str) -> _Run:
        place = run_id, branch_id  # records that a server lost are told again, on another branch
        run = self._runs.pop(place, None) or _Run()
        self._runs[place] = run
        if len(self._runs) > RUNS_REMEMBERED:
            del self._runs[next(iter(self._runs))]
        return run


def _new_text(run: _Run, event: Event) -> Event | None:
    place = (event.attempt, event.turn)
    if place <= run.place or place < run.text_place:
        return None
    if place > run.text_place:
        run.text_place = place
        run.text_length = 0
    delta: str = event.payload["delta"]
    offset: int = event.payload["offset"]
    known = max(run.text_length - offset, 0)
    if known >= len(delta):
        return None
    run.text_length = offset + len(delta)
    if not known:
        return event
    payload = {**event.payload, "delta": delta[known:], "offset": offset + known}
    return msgspec.structs.replace(event, payload=payload)
