"""Read a journal: always in pages, never a whole stream at once."""

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from runlane.journal.errors import UndecodableError
from runlane.journal.partition import Partition
from runlane.journal.wire.codec import decode_body
from runlane.journal.wire.events import Event
from runlane.journal.wire.records import Record

_event_decoder = msgspec.msgpack.Decoder(Event)

PAGE: Final = 200
"""Records a page: a longer XRANGE holds other clients up for more than about 15 ms."""


def record_of(entry: Any) -> Record:
    """Return the record of a stream entry.

    Raises:
        UndecodableError: It is damaged or of a newer version.
    """
    stream_id, pairs = entry
    fields = dict(zip(pairs[::2], pairs[1::2], strict=True))
    try:
        return _record(stream_id, *(fields[name] for name in (b"b", b"p", b"k", b"h", b"t", b"d")))
    except (KeyError, ValueError) as error:
        raise UndecodableError(f"journal entry {stream_id!r} is damaged: {error!r}") from error


def record_of_message(data: bytes) -> Record:
    """Return the record of a live message that carries one (after its first letter).

    Raises:
        UndecodableError: It is damaged or of a newer version.
    """
    try:
        stream_id, branch, parent, kind, digest, at_ms, body = data.split(b"\0", 6)
        return _record(stream_id, branch, parent, kind, digest, at_ms, body)
    except ValueError as error:
        raise UndecodableError(f"a live record is damaged: {error!r}") from error


def event_of_message(data: bytes) -> Event:
    """Return the provisional event of a live message (after its first letter).

    Raises:
        UndecodableError: It is damaged or of a newer version.
    """
    revision, _, event = data.partition(b"\0")
    try:
        return msgspec.structs.replace(_event_decoder.decode(event), revision=int(revision or 0))
    except (ValueError, msgspec.MsgspecError) as error:
        raise UndecodableError(f"a live event is damaged: {error!r}") from error


def _record(
    stream_id: bytes,
    branch: bytes,
    parent: bytes,
    kind: bytes,
    digest: bytes,
    at: bytes,
    data: bytes,
) -> Record:
    name = kind.decode()
    return Record(
        revision=int(stream_id.partition(b"-")[0]),
        record_id=f"{stream_id.decode()}.{digest.decode()}",
        parent_id=parent.decode(),
        branch_id=branch.decode(),
        kind=name,
        at_ms=int(at),
        body=decode_body(name, data),
    )


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
        count: At most this many records.
        retry_s: How long to go on while the server is away; None for the setting.

    Raises:
        UndecodableError: A record is damaged or of a newer version.
        ServerUnavailableError: The server is away.
    """
    entries: list[Any] = await partition.call(
        *("XRANGE", partition.keys.log(session_id), f"{after + 1}-0", "+", "COUNT", count),
        retry_s=retry_s,
    )
    return [record_of(entry) for entry in entries]


async def read_records(
    partition: Partition, session_id: str, *, after: int = 0
) -> AsyncIterator[Record]:
    """Yield all records after revision `after`, page by page.

    Raises:
        UndecodableError: A record is damaged or of a newer version.
        ServerUnavailableError: The server is away.
    """
    while page := await read_page(partition, session_id, after=after):
        for record in page:
            yield record
        after = page[-1].revision
