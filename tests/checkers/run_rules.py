"""What must hold between a run's hash, its records and what stock arq tools see of it."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import msgspec
from tests.checkers.keyspace import Entry, Keyspace, text

from runlane.journal.wire.records import RunFinished, RunQueued
from runlane.journal.wire.results import AgentRunResult

TERMINAL: Final = frozenset({"completed", "failed", "cancelled", "rejected"})
HELD: Final = frozenset({"leased", "running"})


def runs_match_their_records(space: Keyspace) -> Iterator[str]:
    """A run was accepted once, and has ended exactly if it has its one end."""
    queued: dict[str, list[Entry]] = defaultdict(list)
    finished: dict[str, list[RunFinished]] = defaultdict(list)
    for entries in space.logs.values():
        for entry in entries:
            if isinstance(entry.body, RunQueued):
                queued[entry.body.run_id].append(entry)
            elif isinstance(entry.body, RunFinished):
                finished[entry.body.run_id].append(entry.body)
    for run_id in space.runs:
        yield from _check_acceptance(space, run_id, queued[run_id])
        yield from _check_end(space, run_id, finished[run_id])


def _check_acceptance(space: Keyspace, run_id: str, queued: list[Entry]) -> Iterator[str]:
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


def _check_end(space: Keyspace, run_id: str, finished: list[RunFinished]) -> Iterator[str]:
    state = space.run_text(run_id, "state")
    if state not in TERMINAL | HELD | {"queued"}:
        yield f"run {run_id}: has state {state!r}"
    if len(finished) != (state in TERMINAL):
        yield f"run {run_id}: is {state} with {len(finished)} run_finished records"
    fields = space.runs[run_id]
    if state not in TERMINAL:
        if not fields.get("job"):
            yield f"run {run_id}: is {state} and its job is lost"
        return
    for name in fields.keys() & {"job", "worker", "abort"}:
        yield f"run {run_id}: has ended and still has its {name}"
    try:
        stored = msgspec.msgpack.decode(fields.get("result", b""), type=AgentRunResult)
    except msgspec.MsgspecError as error:
        yield f"run {run_id}: its result is damaged: {error}"
        return
    if (stored.status, stored.stop_reason) != (state, space.run_text(run_id, "stop_reason")):
        yield f"run {run_id}: is {state}, its result says {stored.status}/{stored.stop_reason}"
    for body in finished:
        if body.result != stored:
            yield f"run {run_id}: run_finished says {body.result}, its hash {stored}"


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
