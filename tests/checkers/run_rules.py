"""What must hold between a run's hash, its records and what stock arq tools see of it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.checkers.keyspace import Entry, Keyspace, text

from runlane.journal.wire.bodies import RunBody
from runlane.journal.wire.records import (
    MessageAppended,
    RunContinued,
    RunFinished,
    RunQueued,
    RunStarted,
)

TERMINAL: Final = frozenset({"completed", "failed", "cancelled", "rejected"})
HELD: Final = frozenset({"leased", "running"})
OF_THE_LIVING: Final = frozenset(
    {"job", "worker", "abort", "cause", "crashes_row", "policy", "result", "inputs"}
)
"""Fields that a run has no more once it has ended."""


@dataclass
class _Records:
    queued: list[Entry] = field(default_factory=list[Entry])
    begun: list[Entry] = field(default_factory=list[Entry])
    finished: list[Entry] = field(default_factory=list[Entry])


def runs_match_their_records(space: Keyspace) -> Iterator[str]:
    """A run was accepted once, and has ended exactly if it has its one end."""
    records: dict[str, _Records] = defaultdict(_Records)
    for session, entries in space.logs.items():
        imported = space.imported(session)
        aside = space.set_aside(session)
        for entry in entries:
            match entry.body:
                case RunBody(run_id=run_id) if run_id in imported or entry.stream_id in aside:
                    pass
                case RunQueued(run_id=run_id):
                    records[run_id].queued.append(entry)
                case RunStarted(run_id=run_id) | RunContinued(run_id=run_id):
                    records[run_id].begun.append(entry)
                case RunFinished(run_id=run_id):
                    records[run_id].finished.append(entry)
                case _:
                    pass
    for run_id in filter(lambda run_id: not space.is_hold(run_id), space.runs):
        yield from _check_acceptance(space, run_id, records[run_id].queued)
        yield from _check_beginning(space, run_id, records[run_id].begun)
        yield from _check_end(space, run_id, records[run_id].finished)


def _is_trimmed(space: Keyspace, run_id: str, name: str) -> bool:
    """Return whether the record that a field of a run names is in the archive alone."""
    return space.is_trimmed(space.run_text(run_id, "session"), space.run_text(run_id, name))


def _check_acceptance(space: Keyspace, run_id: str, queued: list[Entry]) -> Iterator[str]:
    if not queued and _is_trimmed(space, run_id, "queued_id"):
        return
    if len(queued) != 1:
        yield f"run {run_id}: has {len(queued)} run_queued records"
        return
    body = queued[0].body
    assert isinstance(body, RunQueued)
    expected = {"branch": body.branch_id, "intent": body.intent, "agent": body.agent}
    expected["queued_id"] = queued[0].record_id
    found = {name: space.run_text(run_id, name) for name in expected}
    if found != expected:
        yield f"run {run_id}: its hash says {found}, run_queued {expected}"


def _check_beginning(space: Keyspace, run_id: str, begun: list[Entry]) -> Iterator[str]:
    if not begun and _is_trimmed(space, run_id, "begin"):
        return
    found, expected = space.run_text(run_id, "begin"), [entry.record_id for entry in begun]
    if [found] * bool(found) != expected:
        yield f"run {run_id}: its hash says that it began at {found!r}, its records {expected}"


def _check_end(space: Keyspace, run_id: str, finished: list[Entry]) -> Iterator[str]:
    state = space.run_text(run_id, "state")
    if state not in TERMINAL | HELD | {"queued"}:
        yield f"run {run_id}: has state {state!r}"
    archived = not finished and _is_trimmed(space, run_id, "end")
    if len(finished) != (state in TERMINAL) and not archived:
        yield f"run {run_id}: is {state} with {len(finished)} run_finished records"
    if (state in TERMINAL) != (run_id in space.expiring):
        yield f"run {run_id}: is {state}, expires {run_id in space.expiring}"
    fields = space.runs[run_id]
    if state not in TERMINAL and not fields.get("job"):
        yield f"run {run_id}: is {state} and its job is lost"
    if state in TERMINAL:
        for name in sorted(fields.keys() & OF_THE_LIVING):
            yield f"run {run_id}: has ended and still has its {name}"
    if not archived:
        yield from _check_result(space, run_id, state, finished)


def _check_result(space: Keyspace, run_id: str, state: str, finished: list[Entry]) -> Iterator[str]:
    end = space.run_text(run_id, "end")
    if [end] * bool(end) != [entry.record_id for entry in finished]:
        yield f"run {run_id}: its hash names end {end!r}, which is not its run_finished"
    for entry in finished:
        assert isinstance(entry.body, RunFinished)
        result = entry.body.result
        if (result.status, result.stop_reason) != (state, space.run_text(run_id, "stop_reason")):
            yield f"run {run_id}: is {state}, its result says {result.status}/{result.stop_reason}"


def outputs_are_stored_once(space: Keyspace) -> Iterator[str]:
    """An output that is left out of the end of a run is the text of the record before it."""
    for session, entries in space.logs.items():
        seen = {entry.record_id: entry.body for entry in entries}
        for entry in entries:
            end = entry.body
            if not isinstance(end, RunFinished):
                continue
            parent = seen.get(entry.parent)
            text = parent.message.content if isinstance(parent, MessageAppended) else None
            place = f"session {session} {entry.stream_id}"
            if end.output_in_parent:
                if end.result.output is not None:
                    yield f"{place}: has an output, and names that of its parent"
                if text is None and not space.is_trimmed(session, entry.parent):
                    yield f"{place}: its output is in {entry.parent!r}, which has none"
            elif text is not None and end.result.output == text:
                yield f"{place}: repeats the text of its parent"


def arq_mirrors_the_runs(space: Keyspace) -> Iterator[str]:
    """Stock arq tools never see a run that has ended as going on, or the other way round."""
    for run_id, kinds in space.arq.items():
        state = space.run_text(run_id, "state")
        if state in TERMINAL and (left := kinds - {"result"}):
            yield f"run {run_id}: is {state}, but arq still has its {sorted(left)}"
        if state not in TERMINAL and "result" in kinds:
            yield f"run {run_id}: is {state}, but arq has a result"


def nothing_belongs_to_no_run(space: Keyspace) -> Iterator[str]:
    """Partial texts and idempotency keys name runs that can have them."""
    for run_id in space.values["part:"]:
        if space.run_text(run_id, "state") not in HELD | {"queued"}:
            yield f"run {run_id}: has partial text, but is not going on"
    for key, value in space.values["idem:"].items():
        run_id = text(value).partition(" ")[0]
        if space.run_text(run_id, "session") != key.partition("/")[0]:
            yield f"idempotency key {key}: names run {run_id}, which is not of its session"
    listed = set(space.values["dead"].get("", {}))
    for member in listed ^ set(space.values["dead:"]):
        yield f"dead letter {member}: listed {member in listed}, but not so what it says"
