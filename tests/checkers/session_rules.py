"""What must hold inside each session's journal."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.checkers.keyspace import Entry, Keyspace, text

from runlane.journal.record_order import RECORD_ORDER, RunStage
from runlane.journal.wire.codec import chain_hash
from runlane.journal.wire.messages import ModelToolCall
from runlane.journal.wire.records import (
    CONTROL_BRANCH,
    AbortRequested,
    AnyBody,
    AttemptStarted,
    InAttempt,
    MessageAppended,
    RunFinished,
    RunQueued,
    ToolCompleted,
    ToolStarted,
)


def sessions_are_listed(space: Keyspace) -> Iterator[str]:
    """Each session has its hash, its log, its heads and its place in the list of sessions."""
    listed = set(space.values["sessions"].get("", {}))
    for kind in ("s:", "log:", "heads:"):
        for session in listed ^ set(space.values[kind]):
            yield f"session {session}: listed {session in listed}, but not so its {kind} key"
    for session, fields in space.sessions.items():
        if not fields.get("agent"):
            yield f"session {session}: is bound to no agent"


def chains_are_sound(space: Keyspace) -> Iterator[str]:
    """Revisions count from 1; each record hashes its parent, the one before it on its branch."""
    for session, entries in space.logs.items():
        heads: dict[str, str] = {}
        for revision, entry in enumerate(entries, 1):
            place = f"session {session} {entry.stream_id}"
            parent = heads.get(entry.branch, "")
            if entry.revision != revision:
                yield f"{place}: stands where revision {revision} belongs"
            if entry.parent != parent:
                yield f"{place}: names parent {entry.parent!r}, the one before it is {parent!r}"
            parent_hash = entry.parent.rpartition(".")[2]
            if entry.digest != chain_hash(parent_hash, entry.branch, entry.kind, entry.data):
                yield f"{place}: its hash does not cover its parent and content"
            heads[entry.branch] = entry.record_id
        stored = {branch: text(head) for branch, head in space.heads.get(session, {}).items()}
        if stored != heads:
            yield f"session {session}: heads are {stored}, the last records {heads}"
        counted = text(space.sessions.get(session, {}).get("rev", b""))
        if counted != str(len(entries)):
            yield f"session {session}: rev is {counted!r}, with {len(entries)} records"


def records_are_in_order(space: Keyspace) -> Iterator[str]:
    """Each run's records follow the table, on the chain that they belong to."""
    for session, entries in space.logs.items():
        stages: dict[str, RunStage] = defaultdict(lambda: RunStage.ABSENT)
        for place, entry, body in _bodies(session, entries):
            run_id = body.run_id
            if run_id not in space.runs:
                yield f"{place}: belongs to run {run_id}, which does not exist"
            after = RECORD_ORDER.get((stages[run_id], entry.kind))
            if after is None:
                yield f"{place}: run {run_id} is {stages[run_id]}, no {entry.kind} may follow"
            else:
                stages[run_id] = after
            if entry.branch not in _chains_of(body, space.run_text(run_id, "branch")):
                yield f"{place}: a {entry.kind} of run {run_id} on chain {entry.branch!r}"


def _chains_of(body: AnyBody, branch: str) -> tuple[str, ...]:
    match body:
        case RunQueued() | AbortRequested():
            return (CONTROL_BRANCH,)
        case RunFinished():
            return (CONTROL_BRANCH, branch)
        case _:
            return (branch,)


def attempts_write_one_after_another(space: Keyspace) -> Iterator[str]:
    """No record of an attempt follows one of a later attempt, and a change is announced."""
    for session, entries in space.logs.items():
        last: dict[str, int] = {}
        for place, entry, body in _bodies(session, entries):
            if not isinstance(body, InAttempt):
                continue
            before = last.get(body.run_id, 0)
            if body.attempt < before:
                yield f"{place}: run {body.run_id}, attempt {body.attempt} wrote after {before}"
            elif isinstance(body, AttemptStarted) and body.attempt == before:
                yield f"{place}: run {body.run_id}, attempt {before} began twice"
            elif before and body.attempt > before and not isinstance(body, AttemptStarted):
                yield (
                    f"{place}: run {body.run_id}, attempt {body.attempt} begins with {entry.kind}"
                )
            last[body.run_id] = max(before, body.attempt)
        for run_id, attempt in last.items():
            if run_id in space.runs and attempt > int(space.run_text(run_id, "attempt") or 0):
                yield f"run {run_id}: attempt {attempt} wrote, but was never issued"


@dataclass
class _Calls:
    turn: int = 0
    calls: tuple[ModelToolCall, ...] = ()
    side_effects: set[str] = field(default_factory=set[str])
    completed: set[int] = field(default_factory=set[int])


def tool_calls_are_settled_once(space: Keyspace) -> Iterator[str]:
    """A side effect starts at most once, and each result answers a call of the last response."""
    for session, entries in space.logs.items():
        runs: dict[str, _Calls] = defaultdict(_Calls)
        for place, _, body in _bodies(session, entries):
            of_run = runs[body.run_id]
            match body:
                case MessageAppended():
                    if body.turn <= of_run.turn:
                        yield f"{place}: run {body.run_id}, turn {body.turn} after {of_run.turn}"
                    of_run.turn, of_run.calls = body.turn, body.message.tool_calls
                    of_run.completed = set()
                case ToolStarted():
                    yield from _check_start(place, of_run, body)
                case ToolCompleted():
                    yield from _check_result(place, of_run, body)
                case _:
                    pass


def _check_start(place: str, of_run: _Calls, body: ToolStarted) -> Iterator[str]:
    if body.turn != of_run.turn or body.index not in range(len(of_run.calls)):
        yield f"{place}: tool_started for no call of the last response"
    if body.operation_key != f"{body.run_id}:{body.turn}:{body.index}":
        yield f"{place}: operation key {body.operation_key} names another call"
    if body.index in of_run.completed:
        yield f"{place}: {body.operation_key} is started after it has a result"
    if body.effect == "side_effecting":
        if body.operation_key in of_run.side_effects:
            yield f"{place}: side-effecting {body.operation_key} is started twice"
        of_run.side_effects.add(body.operation_key)


def _check_result(place: str, of_run: _Calls, body: ToolCompleted) -> Iterator[str]:
    if body.turn != of_run.turn or body.index not in range(len(of_run.calls)):
        yield f"{place}: tool_completed for no call of the last response"
    elif body.message.tool_call_id != of_run.calls[body.index].id:
        yield f"{place}: tool_completed {body.index} answers {body.message.tool_call_id!r}"
    if body.index in of_run.completed:
        yield f"{place}: {body.run_id}:{body.turn}:{body.index} has two results"
    of_run.completed.add(body.index)


def _bodies(session: str, entries: list[Entry]) -> Iterator[tuple[str, Entry, AnyBody]]:
    for entry in entries:
        if entry.body is not None:
            yield f"session {session} {entry.stream_id}", entry, entry.body
