"""What must hold of the records of a session as a tree of branches."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from tests.checkers.keyspace import Entry, Keyspace, text

from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.projection import Projection
from runlane.journal.record_order import RecordOrderError
from runlane.journal.wire.codec import chain_hash
from runlane.journal.wire.content import blobs_in
from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import CONTROL_BRANCH, ToolCompleted
from runlane.journal.wire.tree import (
    BranchCreated,
    BranchIntent,
    BranchPromoted,
    Checkpoint,
    HistoryImported,
    Jump,
    MessagesAppended,
)

JUMPS: Final = ("branch_created", "branch_promoted")
ROOTS: Final = (MAIN_BRANCH, CONTROL_BRANCH)
"""Branches that begin with a session."""


def chains_are_sound(space: Keyspace) -> Iterator[str]:
    """Revisions have no gap; each record hashes its parent, the one before it on its branch."""
    for session, entries in space.logs.items():
        first = space.first_revision(session)
        heads: dict[str, str] = {}
        for revision, entry in enumerate(entries, first):
            place = f"session {session} {entry.stream_id}"
            if entry.revision != revision:
                yield f"{place}: stands where revision {revision} belongs"
            before = heads.get(entry.branch, "")
            archived = not before and space.is_trimmed(session, entry.parent)
            if entry.parent != before and not archived and entry.kind not in JUMPS:
                yield f"{place}: names parent {entry.parent!r}, the one before it is {before!r}"
            parent_hash = entry.parent.rpartition(".")[2]
            if entry.digest != chain_hash(parent_hash, entry.branch, entry.kind, entry.data):
                yield f"{place}: its hash does not cover its parent and content"
            heads[entry.branch] = entry.record_id
        stored = {branch: text(head) for branch, head in space.heads.get(session, {}).items()}
        older = {b: head for b, head in stored.items() if space.is_trimmed(session, head)}
        if stored != {**older, **heads}:
            yield f"session {session}: heads are {stored}, the last records {heads}"
        counted = text(space.sessions.get(session, {}).get("rev", b""))
        last = first + len(entries) - 1
        if counted != str(last):
            yield f"session {session}: rev is {counted!r}, its last record {last}"


def jumps_are_noted(space: Keyspace) -> Iterator[str]:
    """A branch goes on from another one only by a record that says so, and is noted beside it."""
    for session, entries in space.logs.items():
        noted = space.jumps.get(session, {})
        seen: dict[str, Entry] = {}
        heads: dict[str, str] = {}
        for entry in entries:
            place = f"session {session} {entry.stream_id}"
            if entry.kind in JUMPS:
                yield from _check_jump(space, session, entry, seen, heads)
                if entry.record_id not in noted:
                    yield f"{place}: a {entry.kind} that is not noted"
            elif entry.branch not in {*heads, *ROOTS} and not space.is_trimmed(
                session, entry.parent
            ):
                yield f"{place}: branch {entry.branch!r} begins with a {entry.kind}"
            seen[entry.record_id] = entry
            heads[entry.branch] = entry.record_id
        for record_id, value in noted.items():
            if record_id in seen:
                yield from _check_note(space, session, seen, seen[record_id], value)
            elif not space.is_trimmed(session, record_id):
                yield f"session {session}: notes a jump {record_id}, which is no record"


def _check_jump(
    space: Keyspace, session: str, entry: Entry, seen: dict[str, Entry], heads: dict[str, str]
) -> Iterator[str]:
    place = f"session {session} {entry.stream_id}"
    promoted = entry.kind == "branch_promoted"
    if entry.branch in ROOTS if not promoted else entry.branch != MAIN_BRANCH:
        yield f"{place}: a {entry.kind} on branch {entry.branch!r}"
    if not promoted and entry.branch in heads:
        yield f"{place}: branch {entry.branch!r} is created twice"
    if isinstance(entry.body, BranchPromoted):
        before = heads.get(MAIN_BRANCH, "")
        found = entry.body.previous_head_id
        if found != before and (before or not space.is_trimmed(session, found)):
            yield f"{place}: the head before is {before!r}, not {found!r}"
    base = seen.get(entry.parent)
    if base is None and (promoted or entry.parent) and not space.is_trimmed(session, entry.parent):
        yield f"{place}: its base {entry.parent!r} is no earlier record"
    if base is not None and base.branch == CONTROL_BRANCH:
        yield f"{place}: its base {entry.parent!r} is on no branch"
    if isinstance(entry.body, BranchCreated) and entry.body.intent is BranchIntent.LOST:
        return  # it keeps what came in the middle of a run
    projection = _project(seen, entry.parent)
    if isinstance(projection, Projection) and projection.open_run is not None:
        yield f"{place}: run {projection.open_run.run_id} is open at its base"


def _check_note(
    space: Keyspace, session: str, seen: dict[str, Entry], entry: Entry, value: bytes
) -> Iterator[str]:
    body = entry.body
    if not isinstance(body, BranchCreated | BranchPromoted):
        yield f"session {session}: notes a jump {entry.record_id}, which is a {entry.kind}"
        return
    found = msgspec.msgpack.decode(value, type=Jump)
    base = seen.get(entry.parent)
    base_branch = base.branch if base is not None else ""
    if base is None and space.is_trimmed(session, entry.parent):
        base_branch = found.base_branch_id
    expected = Jump(
        branch_id=entry.branch,
        base_id=entry.parent,
        base_branch_id=base_branch,
        source_branch_id=body.source_branch_id,
        intent=body.intent if isinstance(body, BranchCreated) else None,
        retried_run_id=body.retried_run_id if isinstance(body, BranchCreated) else None,
    )
    if found != expected:
        yield f"session {session} {entry.stream_id}: is noted as {found}, it says {expected}"


def checkpoints_repeat_their_path(space: Keyspace) -> Iterator[str]:
    """A checkpoint says what all records before it come to, and nothing else."""
    for session, entries in space.logs.items():
        for entry, projection in _replay(entries):
            if not isinstance(entry.body, Checkpoint) or projection is None:
                continue
            if isinstance(projection, str):
                yield f"session {session} {entry.stream_id}: stands for {projection}"
            elif (expected := projection.checkpoint()) is None:
                yield f"session {session} {entry.stream_id}: stands in the middle of a turn"
            elif entry.body != expected:
                yield f"session {session} {entry.stream_id}: says {entry.body}, not {expected}"


def lanes_know_their_branches(space: Keyspace) -> Iterator[str]:
    """What a lane says of its branch is what the records of the branch say."""
    for session, entries in space.logs.items():
        checkpoints: dict[str, str] = {}
        for entry in entries:
            if entry.kind in JUMPS:
                checkpoints[entry.branch] = ""
            elif entry.kind in ("checkpoint", "compaction_applied"):
                checkpoints[entry.branch] = str(entry.revision)
        seen = {entry.record_id: entry for entry in entries}
        for branch, head in space.heads.get(session, {}).items():
            if branch == CONTROL_BRANCH:
                continue
            lane = f"{session}/{branch}"
            found = space.lane_text(lane, "checkpoint")
            expected = checkpoints.get(branch, "")
            archived = branch not in checkpoints and space.is_trimmed(session, found)
            if found != expected and not archived:
                yield f"lane {lane}: its checkpoint is {found!r}, not {expected!r}"
            projection = _project(seen, text(head))
            if not isinstance(projection, Projection):
                continue
            last = projection.last_run
            ended = (last.run_id, last.stop_reason) if last else ("", "")
            told = (space.lane_text(lane, "last_run"), space.lane_text(lane, "last_stop"))
            if told != ended:
                yield f"lane {lane}: its last run is {told}, not {ended}"


def blobs_are_counted(space: Keyspace) -> Iterator[str]:
    """A blob is listed and knows how many records of the stream name it; what is named is there."""
    named: Counter[str] = Counter()
    orphans = set(space.values["orphans"].get("", {}))
    for session, entries in space.logs.items():
        for entry in entries:
            named.update({f"{session}/{digest}" for digest in _brought(entry.body)})
    for name in named.keys() - space.blobs.keys():
        yield f"blob {name}: is gone, and {named[name]} records name it"
    for name, fields in space.blobs.items():
        refs = int(fields.get("refs", b"0"))
        if refs != named[name]:
            yield f"blob {name}: counts {refs} records, {named[name]} name it"
        if (refs == 0) != (name in orphans):
            yield f"blob {name}: counts {refs} records, is an orphan {name in orphans}"
    listed = {f"{sid}/{digest}" for sid, of in space.values["blobs:"].items() for digest in of}
    for name in (listed | orphans) - space.blobs.keys():
        yield f"blob {name}: is listed, and there is none"
    for name in space.blobs.keys() - listed:
        yield f"blob {name}: is not listed"


def _brought(body: object) -> set[str]:
    """Return the digests of the blobs that a record is the first to name."""
    messages = body.messages if isinstance(body, MessagesAppended) else ()
    results = [each for each in messages if isinstance(each, ToolMessage)]
    refs = [ref for result in results for ref in blobs_in(result.blocks)]
    if isinstance(body, ToolCompleted):
        refs += blobs_in(body.message.blocks)
        refs += [body.full] if body.full else []
    return {ref.digest for ref in refs}


Replayed = Projection | str | None
"""A projection, why there is none, or None where the stream has not all that it takes."""


def _replay(entries: Sequence[Entry]) -> Iterator[tuple[Entry, Replayed]]:
    """Yield each record of a branch with the projection of all that comes before it."""
    seen: dict[str, Entry] = {}
    projections: dict[str, Replayed] = {}
    for entry in entries:
        seen[entry.record_id] = entry
        if entry.branch == CONTROL_BRANCH:
            continue
        if entry.branch not in projections or entry.kind in JUMPS:
            projections[entry.branch] = _project(seen, entry.parent)
        projection = projections[entry.branch]
        yield entry, projection
        if projection is None and isinstance(entry.body, Checkpoint | HistoryImported):
            projection = Projection()
        projections[entry.branch] = _add(projection, entry)


def _project(seen: dict[str, Entry], record_id: str) -> Replayed:
    """Fold all that leads to a record, from the root on if the stream has it."""
    path: list[Entry] = []
    while (entry := seen.get(record_id)) is not None:
        path.append(entry)
        record_id = entry.parent
    projection: Replayed = None if record_id else Projection()
    for entry in reversed(path):
        if projection is None and isinstance(entry.body, Checkpoint | HistoryImported):
            projection = Projection()
        projection = _add(projection, entry)
    return projection


def _add(projection: Replayed, entry: Entry) -> Replayed:
    if not isinstance(projection, Projection):
        return projection
    if entry.body is None:
        return f"a damaged record ({entry.stream_id})"
    try:
        projection.add(entry.body, entry.parent)
    except RecordOrderError as error:
        return f"records that do not follow each other ({error})"
    return projection
