"""What a subscriber may be given, by what it was given before."""

import pytest

from runlane.producer import Event, EventKind
from runlane.producer.position import RUNS_REMEMBERED, Position


def committed(
    kind: EventKind, revision: int, *, run: str = "r", attempt: int = 1, turn: int = 0
) -> Event:
    return Event(
        session_id="s",
        branch_id="main",
        run_id=run,
        kind=kind,
        at_ms=0,
        attempt=attempt,
        turn=turn,
        cursor=f"{revision}-1.x",
        revision=revision,
    )


def delta(
    text: str, offset: int, *, revision: int = 1, run: str = "r", attempt: int = 1, turn: int = 1
) -> Event:
    return Event(
        session_id="s",
        branch_id="main",
        run_id=run,
        kind=EventKind.ASSISTANT_TEXT_DELTA,
        at_ms=0,
        attempt=attempt,
        turn=turn,
        payload={"delta": text, "offset": offset},
        revision=revision,
        count=1,
    )


def given(position: Position, event: Event) -> tuple[str, int] | None:
    new = position.admit(event)
    return None if new is None else (new.payload["delta"], new.payload["offset"])


def test_it_stands_where_it_passed() -> None:
    position = Position()
    assert (position.revision, position.cursor) == (0, None)
    position.passed(committed(EventKind.RUN_QUEUED, 1))
    assert (position.revision, position.cursor) == (1, "1-1.x")


@pytest.mark.parametrize(
    ("event", "new"),
    [
        (delta("cd", 2), ("cd", 2)),
        (delta("ab", 0), None),
        (delta("bcd", 1), ("cd", 2)),
        (delta("abcd", 0), ("cd", 2)),
        (delta("xy", 5), ("xy", 5)),
        (delta("", 2), None),
        (delta("new", 0, turn=2), ("new", 0)),
        (delta("new", 0, attempt=2), ("new", 0)),
    ],
)
def test_text_is_given_once(event: Event, new: tuple[str, int] | None) -> None:
    position = Position()
    assert given(position, delta("ab", 0)) == ("ab", 0)
    assert given(position, event) == new
    assert given(position, event) is None


def test_text_that_was_missed_is_noticed() -> None:
    position = Position()
    assert position.misses_text_before(delta("b", 1))
    assert not position.misses_text_before(delta("a", 0))
    position.admit(delta("ab", 0))
    assert not position.misses_text_before(delta("c", 2))
    assert position.misses_text_before(delta("d", 3))
    assert position.misses_text_before(delta("d", 3, turn=2))


@pytest.mark.parametrize(
    "later",
    [
        committed(EventKind.MESSAGE_COMPLETED, 3, turn=1),
        committed(EventKind.TOOL_STARTED, 3, turn=1),
        committed(EventKind.SUPERSEDED, 3, attempt=2),
        committed(EventKind.AGENT_FINISHED, 3, attempt=0, turn=1),
    ],
)
def test_a_later_record_makes_the_text_of_its_turn_stale(later: Event) -> None:
    position = Position()
    position.passed(committed(EventKind.AGENT_STARTED, 2))
    assert given(position, delta("a", 0, revision=2)) == ("a", 0)
    position.passed(later)
    assert given(position, delta("b", 1, revision=2)) is None
    assert given(position, delta("b", 1, revision=3)) is None


def test_records_of_the_queue_and_of_other_runs_make_nothing_stale() -> None:
    position = Position()
    position.passed(committed(EventKind.AGENT_STARTED, 2))
    position.passed(committed(EventKind.ABORT_REQUESTED, 3))
    position.passed(committed(EventKind.RUN_QUEUED, 4, run="other"))
    position.passed(committed(EventKind.AGENT_FINISHED, 5, run="other"))
    assert given(position, delta("a", 0, revision=2)) == ("a", 0)


def test_other_provisional_events_follow_the_revision_alone() -> None:
    position = Position()
    position.passed(committed(EventKind.MESSAGE_COMPLETED, 3, turn=1))
    progress = committed(EventKind.TOOL_PROGRESSED, 3, turn=1)
    assert position.admit(progress) is progress
    position.passed(committed(EventKind.TOOL_COMPLETED, 4, turn=1))
    assert position.admit(progress) is None


def test_runs_are_open_from_their_start_to_their_end() -> None:
    position = Position()
    position.passed(committed(EventKind.RUN_QUEUED, 1, run="waiting"))
    assert list(position.open_runs()) == []
    position.passed(committed(EventKind.AGENT_STARTED, 2))
    position.watch("watched", "draft")
    assert list(position.open_runs()) == [("r", "main"), ("watched", "draft")]
    position.passed(committed(EventKind.AGENT_FINISHED, 3))
    assert list(position.open_runs()) == [("watched", "draft")]


def test_only_so_many_runs_are_remembered() -> None:
    position = Position()
    for number in range(RUNS_REMEMBERED + 5):
        position.passed(committed(EventKind.AGENT_STARTED, number + 1, run=f"r{number}"))
    remembered = [run for run, _ in position.open_runs()]
    assert remembered == [f"r{number}" for number in range(5, RUNS_REMEMBERED + 5)]
