"""Hypothesis strategies: any value of a wire type, and any valid history of a branch."""

from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import Struct
from tests.journal.builders import result_of

from runlane.journal.wire.content import FileBlock, ImageBlock
from runlane.journal.wire.messages import (
    AssistantMessage,
    ModelToolCall,
    ModelUsage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.records import (
    CONTROL_BRANCH,
    KIND_OF,
    AbortRequested,
    AnyBody,
    AttemptCause,
    AttemptStarted,
    MessageAppended,
    Record,
    RunContinued,
    RunFinished,
    RunQueued,
    RunStarted,
    ToolCompleted,
    ToolOutcome,
    ToolStarted,
)
from runlane.journal.wire.tree import MessagesAppended, SteeringApplied

_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(-(2**63), 2**64 - 1),
    bool: st.booleans(),
    type(None): st.none(),
    **{
        block: st.builds(
            block, media_type=st.just("image/png"), url=st.just("https://example.org/1")
        )
        for block in (ImageBlock, FileBlock)
    },
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a wire type, optional fields included."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    args = get_args(hint)
    match get_origin(hint):
        case origin if origin in (Union, UnionType):
            found = st.one_of([values_of(arg) for arg in args])
        case origin if origin is Literal:
            found = st.sampled_from(args)
        case origin if origin is tuple:
            found = st.lists(values_of(args[0]), max_size=4).map(tuple)
        case origin if origin is dict:
            found = st.dictionaries(*map(values_of, args), max_size=3)
        case _ if issubclass(hint, Enum):
            found = st.sampled_from(hint)
        case _:
            assert issubclass(hint, Struct), hint
            fields = {name: values_of(field) for name, field in get_type_hints(hint).items()}
            found = st.builds(hint, **fields)
    return found


Entry = tuple[str, AnyBody]
_COUNTED: st.SearchStrategy[tuple[str, ...]] = st.sampled_from([(), ("a",), ("a", "b")])


def _turn(draw: st.DrawFn, run_id: str, turn: int, attempt: int, *, last: bool) -> list[Entry]:
    asked = draw(st.lists(st.sampled_from(["", "{}", '{"a": 1}', '{"a":1}']), max_size=3))
    calls = tuple(
        ModelToolCall(id=f"{run_id}:{turn}:{index}", name="tool", arguments=arguments)
        for index, arguments in enumerate(asked)
    )
    place: dict[str, Any] = {"run_id": run_id, "turn": turn, "attempt": attempt}
    usage = draw(st.none() | st.builds(ModelUsage, st.integers(0, 9), st.integers(0, 9)))
    message = AssistantMessage(f"{run_id} {turn}", tool_calls=calls)
    entries: list[Entry] = [("main", MessageAppended(**place, message=message, usage=usage))]
    for index in draw(st.permutations(range(len(calls)))):
        call = calls[index]
        place["index"] = index
        counted = draw(_COUNTED)
        if draw(st.booleans()):
            of_call: dict[str, Any] = {"call": call, "operation_key": call.id, "counted": counted}
            entries.append(("main", ToolStarted(**place, effect="idempotent", **of_call)))
            counted = ()
        if last and draw(st.booleans()):
            break  # the run ends or goes on without the results
        answer = ToolMessage(tool_call_id=call.id, tool_name=call.name, content="done")
        done = ToolCompleted(**place, outcome=ToolOutcome.OK, message=answer, counted=counted)
        entries.append(("main", done))
    return entries


def _between(draw: st.DrawFn, run_id: str, turn: int) -> list[Entry]:
    """Return what somebody else says between two turns."""
    said = UserMessage(f"to {run_id} after {turn}")
    match draw(st.integers(0, 3)):
        case 0:
            heard = {"input_id": f"{run_id}:{turn}", "content": said.content}
            return [("main", SteeringApplied(run_id=run_id, target_turn=turn + 1, **heard))]
        case 1:
            return [("main", MessagesAppended(run_id=run_id, messages=(said,)))]
        case _:
            return []


def _start(draw: st.DrawFn, run_id: str) -> AnyBody:
    place: dict[str, Any] = {"run_id": run_id, "agent": "a", "version": "1", "worker_id": "w"}
    if draw(st.booleans()):
        return RunContinued(attempt=1, **place)
    return RunStarted(attempt=1, message=UserMessage(f"task {run_id}"), **place)


def _run(draw: st.DrawFn, run_id: str) -> list[Entry]:
    queued = RunQueued(run_id=run_id, branch_id="main", intent="run", agent="a")
    abort = AbortRequested(run_id=run_id, branch_id="main", reason="enough")
    end = RunFinished(run_id=run_id, branch_id="main", result=result_of())
    entries: list[Entry] = [(CONTROL_BRANCH, queued)]
    if draw(st.booleans()):
        entries.append((CONTROL_BRANCH, abort))
    if draw(st.integers(0, 4)) == 0:
        return [*entries, (CONTROL_BRANCH, end)]
    entries.append(("main", _start(draw, run_id)))
    attempt, turns = 1, draw(st.integers(0, 3))
    for turn in range(1, turns + 1):
        entries += _turn(draw, run_id, turn, attempt, last=turn == turns)
        if turn < turns:
            entries += _between(draw, run_id, turn)
        if draw(st.integers(0, 3)) == 0:
            attempt += 1
            cause = draw(st.sampled_from(AttemptCause))
            again = AttemptStarted(run_id=run_id, attempt=attempt, worker_id="w", cause=cause)
            entries.append(("main", again))
    return [*entries, ("main", end)]


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """Return the records of a session with one branch; the last run may still go on."""
    entries: list[Entry] = []
    for number in range(draw(st.integers(1, 4))):
        entries += _run(draw, f"run-{number}")
    entries = entries[: len(entries) - draw(st.integers(0, 5))] or entries[:1]
    records: list[Record] = []
    heads: dict[str, str] = {}
    for revision, (branch, body) in enumerate(entries, 1):
        record_id = f"{revision}-1.{'0' * 24}"
        records.append(
            Record(
                revision=revision,
                record_id=record_id,
                parent_id=heads.get(branch, ""),
                branch_id=branch,
                kind=KIND_OF[type(body)],
                at_ms=0,
                body=body,
            )
        )
        heads[branch] = record_id
    return records


def paths() -> st.SearchStrategy[list[Record]]:
    """Return strategies for the path to the head of `main` in a history."""
    return histories().map(
        lambda records: [record for record in records if record.branch_id == "main"]
    )
