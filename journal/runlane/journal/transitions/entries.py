"""Records as the scripts take them: encoded, hashed and chained to the head that they build on."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from runlane.journal.wire.codec import chain_hash, encode_body
from runlane.journal.wire.content import blobs_in
from runlane.journal.wire.events import Event
from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import (
    AnyBody,
    MessageAppended,
    RunFinished,
    SteeringDiscarded,
    ToolCompleted,
)
from runlane.journal.wire.tree import MessagesAppended, SteeringApplied


class Written(Struct, frozen=True):
    """A record as it is stored, or an event, which has bytes only.

    Attributes:
        kind: The kind of the record.
        digest: Its chain hash.
        data: Its content, encoded.
        blobs: Digests of the blobs that it names, between spaces.
        settles: Id of the input of which it says what became of it; empty if of none.
    """

    kind: str
    digest: str
    data: bytes
    blobs: str = ""
    settles: str = ""


def chained(
    branch_id: str, head: str, entries: Sequence[AnyBody | Event | Written]
) -> list[Written]:
    """Return entries as they are stored on top of `head`, oldest first.

    What was stored before keeps its bytes and, on top of the same history, its hash.
    """
    written: list[Written] = []
    parent_hash = head.rpartition(".")[2]
    for entry in entries:
        if isinstance(entry, Event):
            written.append(Written("", "", msgspec.msgpack.encode(entry)))
            continue
        if isinstance(entry, Written):
            kind, data, blobs, settles = entry.kind, entry.data, entry.blobs, entry.settles
        else:
            kind, data = encode_body(entry)
            blobs, settles = blobs_of(entry), settled_of(entry)
        parent_hash = chain_hash(parent_hash, branch_id, kind, data)
        written.append(Written(kind, parent_hash, data, blobs, settles))
    return written


def entry_args(written: Sequence[Written]) -> list[str | bytes]:
    """Return entries as arguments of a script."""
    return [word for each in written for word in (each.kind, each.digest, each.data, each.blobs)]


def as_stored(end: RunFinished, entries: Sequence[AnyBody | Event | Written]) -> RunFinished:
    """Return an end without its output where that is the text of the record before it."""
    records = [entry for entry in entries if not isinstance(entry, Event)]
    last = records[-1] if records else None
    output = end.result.output
    if output is None or not isinstance(last, MessageAppended) or last.message.content != output:
        return end
    return replace(end, result=replace(end.result, output=None), output_in_parent=True)


def settled_of(body: AnyBody) -> str:
    """Return the id of the input that a record settles; empty if it settles none."""
    return body.input_id if isinstance(body, SteeringApplied | SteeringDiscarded) else ""


def blobs_of(body: AnyBody) -> str:
    """Return the digests of the blobs that a record brings along, between spaces, each once.

    What only repeats messages of older records, such as a checkpoint, brings none: those keep the
    blobs, and so does the archive when they go there.
    """
    match body:
        case ToolCompleted(message=message, full=full):
            refs = [full, *blobs_in(message.blocks)] if full else blobs_in(message.blocks)
        case MessagesAppended(messages=messages):
            results = [each for each in messages if isinstance(each, ToolMessage)]
            refs = [ref for result in results for ref in blobs_in(result.blocks)]
        case _:
            return ""
    return " ".join(dict.fromkeys(ref.digest for ref in refs))
