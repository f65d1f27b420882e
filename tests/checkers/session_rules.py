"""What must hold of the runs in each session's journal."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.checkers.keyspace import Entry, Keyspace

from runlane.journal.record_order import RECORD_ORDER, RunStage
from runlane.journal.wire.bodies import InAttempt, RunBody
from runlane.journal.wire.messages import ModelToolCall
from runlane.journal.wire.records import (
    CONTROL_BRANCH,
    AbortRequested,
    AttemptStarted,
    LeaseStolen,
    MessageAppended,
    RunContinued,
    RunFinished,
    RunQueued,
    RunStarted,
    SteeringDiscarded,
    ToolCompleted,
    ToolStarted,
)


def sessions_are_listed(space: Keyspace) -> Iterator[str]:
    """Each session has its hash, its log, its heads and its place in the list of sessions."""
    listed = set(space.values["sessions"].get("", {}))
    seen = {session: fields for session, fields in space.sessions.items() if "rev" in fields}
    for kind, found in (("s:", seen), ("log:", space.logs), ("heads:", space.heads)):
        for session in listed ^ set(found):
            yield f"session {session}: listed {session in listed}, but not so its {kind} key"
    for session, fields in seen.items():
        if not fields.get("agent") and "imported" not in fields:
            yield f"session {session}: is bound to no agent"


def records_are_in_order(space: Keyspace) -> Iterator[str]:
    """Each run's records follow the table, on the chain that they belong to."""
    for session, entries in space.logs.items():
        stages: dict[str, RunStage] = defaultdict(lambda: RunStage.ABSENT)
        stages |= dict.fromkeys(space.imported(session), RunStage.QUEUED)
        branches: dict[str, str] = {}
        begun: set[str] = set()
        for place, entry, body in _bodies(space, session, entries):
            run_id = body.run_id
            after = RECORD_ORDER.get((stages[run_id], entry.kind))
            if after is None:
                yield f"{place}: run {run_id} is {stages[run_id]}, no {entry.kind} may follow"
            else:
                stages[run_id] = after
            branch = branches.setdefault(run_id, getattr(body, "branch_id", entry.branch))
            if entry.branch not in _chains_of(body, branch, begun=run_id in begun):
                yield f"{place}: a {entry.kind} of run {run_id} on chain {entry.branch!r}"
            if isinstance(body, RunStarted | RunContinued):
                begun.add(run_id)
        for run_id, stage in stages.items():
            if run_id not in space.runs and stage is not RunStage.FINISHED:
                yield f"session {session}: run {run_id} is {stage}, and does not exist"


def _chains_of(body: RunBody, branch: str, *, begun: bool) -> tuple[str, ...]:
    match body:
        case RunQueued() | AbortRequested() | LeaseStolen():
            return (CONTROL_BRANCH,)
        case RunFinished() | SteeringDiscarded() if not begun:
            return (CONTROL_BRANCH, branch)
        case _:
            return (branch,)


def attempts_write_one_after_another(space: Keyspace) -> Iterator[str]:
    """No record of an attempt follows one of a later attempt, and a change is announced."""
    for session, entries in space.logs.items():
        last: dict[str, int] = {}
        for place, entry, body in _bodies(space, session, entries):
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
        for place, _, body in _bodies(space, session, entries):
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


def _bodies(
    space: Keyspace, session: str, entries: list[Entry]
) -> Iterator[tuple[str, Entry, RunBody]]:
    """Yield the records of runs, of those that the stream has from their first record on."""
    whole = {entry.body.run_id for entry in entries if isinstance(entry.body, RunQueued)}
    aside = space.set_aside(session)
    for entry in entries:
        body = entry.body
        if entry.stream_id in aside:
            continue
        if isinstance(body, RunBody) and (body.run_id in whole or not space.trimmed(session)):
            yield f"session {session} {entry.stream_id}", entry, body
