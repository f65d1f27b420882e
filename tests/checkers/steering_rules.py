"""What must hold of what was said to runs."""

from collections import defaultdict
from collections.abc import Iterator

from tests.checkers.keyspace import Keyspace
from tests.checkers.run_rules import HELD

from runlane.journal.transitions.steer import CAPACITY
from runlane.journal.wire.records import SteeringDiscarded
from runlane.journal.wire.tree import SteeringApplied


def inputs_wait_for_a_run_that_goes_on(space: Keyspace) -> Iterator[str]:
    """Inputs wait for an active run, no more than there is room for, and the run knows of them."""
    for run_id, inputs in space.steering.items():
        state = space.run_text(run_id, "state")
        if state not in HELD | {"queued"}:
            yield f"run {run_id}: is {state!r}, and inputs wait for it"
        elif space.lane_text(space.lane_of(run_id), "active") != run_id:
            yield f"run {run_id}: is not active, and inputs wait for it"
        if len(inputs) > CAPACITY:
            yield f"run {run_id}: {len(inputs)} inputs wait for it"
    for run_id, fields in space.runs.items():
        if ("inputs" in fields) != (run_id in space.steering):
            yield f"run {run_id}: says that inputs wait {'inputs' in fields}"


def inputs_are_settled_once(space: Keyspace) -> Iterator[str]:
    """Each accepted input waits, or one record says what became of it."""
    settled = _settled(space)
    waiting = {
        each.partition(" ")[0]: run_id
        for run_id, inputs in space.steering.items()
        for each in inputs
    }
    for input_id, run_ids in settled.items():
        if len(run_ids) > 1:
            yield f"input {input_id}: is settled {len(run_ids)} times"
        if input_id in waiting:
            yield f"input {input_id}: is settled, and waits"
    for input_id, run_id in space.inputs.items():
        told = {*settled.get(input_id, ()), *filter(None, [waiting.get(input_id)])}
        session = space.run_text(run_id, "session")
        if not told and session and not space.trimmed(session):
            yield f"input {input_id}: was accepted, and nothing tells what became of it"
        elif told - {run_id}:
            yield f"input {input_id}: was said to run {run_id}, and came to another one"


def _settled(space: Keyspace) -> dict[str, list[str]]:
    """Return input id → runs whose records settle it; what hooks say has a colon in its id."""
    settled: dict[str, list[str]] = defaultdict(list)
    for session, entries in space.logs.items():
        imported, aside = space.imported(session), space.set_aside(session)
        for entry in entries:
            body = entry.body
            if not isinstance(body, SteeringApplied | SteeringDiscarded):
                continue
            if entry.stream_id in aside or body.run_id in imported or ":" in body.input_id:
                continue
            settled[body.input_id].append(body.run_id)
    return settled
