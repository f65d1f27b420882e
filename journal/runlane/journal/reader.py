"""Read a journal: always in pages, never a whole stream at once; archived records too."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from runlane.journal.archive.segment import Entry
from runlane.journal.errors import UndecodableError
from runlane.journal.ownership import archive_of
from runlane.journal.partition import Partition
from runlane.journal.wire.codec import decode_body
from runlane.journal.wire.events import Event
from runlane.journal.wire.records import MessageAppended, Record, RunFinished
from runlane.journal.wire.versions import plain_name

_event_decoder = msgspec.msgpack.Decoder(Event)

PAGE: Final = 200
"""Records a page: a longer XRANGE holds other clients up for more than about 15 ms."""


def entry_of(raw: Any) -> Entry:
    """Return a stream entry as redis-py gives it, by its fields.

    Raises:
        UndecodableError: It is damaged.
    """
    stream_id, pairs = raw
    fields = dict(zip(pairs[::2], pairs[1::2], strict=True))
    try:
        return Entry(
            stream_id=stream_id.decode(),
            branch=fields[b"b"].decode(),
            parent=fields[b"p"].decode(),
            kind=fields[b"k"].decode(),
            digest=fields[b"h"].decode(),
            at_ms=int(fields[b"t"]),
            data=fields[b"d"],
        )
    except (KeyError, ValueError) as error:
        raise UndecodableError(f"journal entry {stream_id!r} is damaged: {error!r}") from error


def record_of(entry: Entry) -> Record:
    """Return the record of an entry.

    Raises:
        UndecodableError: It is damaged or of a newer version.
    """
    return Record(
        revision=int(entry.stream_id.partition("-")[0]),
        record_id=f"{entry.stream_id}.{entry.digest}",
        parent_id=entry.parent,
        branch_id=entry.branch,
        kind=plain_name(entry.kind),
        at_ms=entry.at_ms,
        body=decode_body(entry.kind, entry.data),
    )


def record_of_message(data: bytes) -> Record:
    """Return the record of a live message that carries one (after its first letter).

    Raises:
        UndecodableError: It is damaged or of a newer version.
    """
    try:
        *words, body = data.split(b"\0", 6)
        stream_id, branch, parent, kind, digest, at_ms = (word.decode() for word in words)
        entry = Entry(
            stream_id=stream_id,
            branch=branch,
            parent=parent,
            kind=kind,
            digest=digest,
            at_ms=int(at_ms),
            data=body,
        )
        return record_of(entry)
    except ValueError as error:
        raise UndecodableError(f"a live record is damaged: {error!r}") from error


def event_of_message(data: bytes) -> Event:
    """Return the provisional event of a live message (after its first letter).

    Raises:
        UndecodableError: It is damaged or of a newer version.
    """
    revision, _, event = data.partition(b"\0")
    try:
        return replace(_event_decoder.decode(event), revision=int(revision or 0))
    except (ValueError, msgspec.MsgspecError) as error:
        raise UndecodableError(f"a live event is damaged: {error!r}") from error


class _Edge(msgspec.Struct, frozen=True):
    """Where the stream begins: what is older lies in the archive."""

    trimmed: int
    segment: str


async def read_page(
    partition: Partition,
    session_id: str,
    *,
    after: int = 0,
    count: int = PAGE,
    retry_s: float | None = None,
) -> list[Record]:
    """Return up to `count` records after revision `after`, oldest first.

    Args:
        partition: Where the session lives.
        session_id: The session.
        after: The revision before the first one to return.
        count: At most this many records; fewer only at the end of the journal.
        retry_s: How long to go on while the server is away; None for the setting.

    Raises:
        UndecodableError: A record is damaged or of a newer version.
        ArchiveError: Archived records cannot be read.
        ServerUnavailableError: The server is away.
    """
    entries = await _read_entries(partition, session_id, after=after, count=count, retry_s=retry_s)
    return await _with_outputs(partition, session_id, [record_of(entry) for entry in entries])


async def read_page_back(
    partition: Partition, session_id: str, *, upto: int | None = None, count: int = PAGE
) -> list[Record]:
    """Return up to `count` records from revision `upto` back, newest first; None is the last.

    Fewer do not mean that there are no more; none do.

    Raises:
        UndecodableError: A record is damaged or of a newer version.
        ArchiveError: Archived records cannot be read.
        ServerUnavailableError: The server is away.
    """
    entries = await read_entries_back(partition, session_id, upto=upto, count=count)
    return await _with_outputs(partition, session_id, [record_of(entry) for entry in entries])


async def read_entries_back(
    partition: Partition, session_id: str, *, upto: int | None, count: int
) -> list[Entry]:
    """Return what `read_page_back` does, not yet decoded.

    Raises:
        UndecodableError: An entry is damaged.
        ArchiveError: Archived records cannot be read.
        ServerUnavailableError: The server is away.
    """
    end = "+" if upto is None else f"{upto}"
    entries, edge = await _read_stream(partition, session_id, "XREVRANGE", end, "-", count, None)
    if entries or not edge.trimmed:
        return entries  # perhaps fewer, so that nobody waits for the archive who does not need it
    last = edge.trimmed if upto is None else min(upto, edge.trimmed)
    return await (await archive_of(partition, session_id)).read_backward(
        session_id, edge.segment, from_revision=last, count=count
    )


async def read_record(partition: Partition, session_id: str, record_id: str) -> Record | None:
    """Return one record; None if the journal has no record with this id.

    Raises:
        UndecodableError: It is damaged or of a newer version.
        ArchiveError: It is archived and cannot be read.
        ServerUnavailableError: The server is away.
    """
    revision = int(record_id.partition("-")[0])
    entries = await _read_entries(partition, session_id, after=revision - 1, count=1)
    found = [record_of(e) for e in entries if f"{e.stream_id}.{e.digest}" == record_id]
    return (await _with_outputs(partition, session_id, found))[0] if found else None


async def read_records(
    partition: Partition, session_id: str, *, after: int = 0
) -> AsyncGenerator[Record, None]:
    """Yield all records after revision `after`, page by page.

    Raises:
        UndecodableError: A record is damaged or of a newer version.
        ArchiveError: Archived records cannot be read.
        ServerUnavailableError: The server is away.
    """
    while page := await read_page(partition, session_id, after=after):
        for record in page:
            yield record
        after = page[-1].revision


async def read_records_back(
    partition: Partition, session_id: str, *, upto: int | None = None
) -> AsyncGenerator[Record, None]:
    """Yield all records from revision `upto` back to the first, page by page.

    Raises:
        UndecodableError: A record is damaged or of a newer version.
        ArchiveError: Archived records cannot be read.
        ServerUnavailableError: The server is away.
    """
    while page := await read_page_back(partition, session_id, upto=upto):
        for record in page:
            yield record
        upto = page[-1].revision - 1


async def _read_entries(
    partition: Partition, session_id: str, *, after: int, count: int, retry_s: float | None = None
) -> list[Entry]:
    """Return what `read_page` does, not yet decoded."""
    entries, edge = await _read_stream(
        partition, session_id, "XRANGE", f"{after + 1}", "+", count, retry_s
    )
    if after >= edge.trimmed:
        return entries
    archived = await (await archive_of(partition, session_id)).read_forward(
        session_id, edge.segment, after=after, upto=edge.trimmed, count=count
    )
    newer = [entry for entry in entries if _revision(entry) > edge.trimmed]
    return [*archived, *newer][:count]


async def _read_stream(
    partition: Partition,
    session_id: str,
    command: str,
    start: str,
    end: str,
    count: int,
    retry_s: float | None,
) -> tuple[list[Entry], _Edge]:
    """Return entries of the stream and then its edge: what was trimmed meanwhile is archived."""
    keys = partition.keys
    raw, (trimmed, segment) = await partition.call_in_order(
        (command, keys.log(session_id), start, end, "COUNT", count),
        ("HMGET", keys.session(session_id), "trimmed", "segment"),
        retry_s=retry_s,
    )
    edge = _Edge(trimmed=int(trimmed or 0), segment=(segment or b"").decode())
    return [entry_of(each) for each in raw], edge


def _revision(entry: Entry) -> int:
    return int(entry.stream_id.partition("-")[0])


async def _with_outputs(
    partition: Partition, session_id: str, records: Sequence[Record]
) -> list[Record]:
    """Put back the outputs that are stored in the record before the end only."""
    known = {record.record_id: record for record in records}
    return [
        await _with_output(partition, session_id, record, known)
        if isinstance(record.body, RunFinished) and record.body.output_in_parent
        else record
        for record in records
    ]


async def _with_output(
    partition: Partition, session_id: str, record: Record, known: dict[str, Record]
) -> Record:
    end = record.body
    assert isinstance(end, RunFinished)
    parent = known.get(record.parent_id)
    parent = parent or await read_record(partition, session_id, record.parent_id)
    if parent is None or not isinstance(parent.body, MessageAppended):
        raise UndecodableError(
            f"record {record.record_id} of session {session_id!r} has its output in "
            f"{record.parent_id}, which the journal has no more"
        )
    result = replace(end.result, output=parent.body.message.content)
    return replace(record, body=replace(end, result=result, output_in_parent=False))
