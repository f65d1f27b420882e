"""Delete a session with all that is kept of it; it may be stopped at any point, and begun again."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from typing import Final

from runlane.journal.archive.archive import Archive
from runlane.journal.archive.segment import Entry
from runlane.journal.errors import (
    ArchiveDamagedError,
    ArchiveMissingError,
    UndecodableError,
)
from runlane.journal.ownership import archive_of
from runlane.journal.partition import Partition
from runlane.journal.reader import PAGE, entry_of
from runlane.journal.transitions import delete_rest, delete_runs, delete_session, forget_deleted
from runlane.journal.transitions.delete_session import RESUME_MS, Deletion
from runlane.journal.wire.codec import decode_body
from runlane.journal.wire.records import RunQueued
from runlane.journal.wire.versions import plain_name

_AT_ONCE: Final = 20
_SCANNED_AT_ONCE: Final = 500


async def delete(
    partition: Partition,
    session_id: str,
    *,
    keep_s: int,
    unused_s: int = 0,
    begun: str | None = None,
) -> bool:
    """Delete a session: its runs end, then everything of it goes, in the archive too.

    Args:
        partition: Where the session lives.
        session_id: The session.
        keep_s: How long to remember its last revision, from which a session of the same name goes
            on, in seconds.
        unused_s: Only if it has no run, and for this long nobody has asked for one and none has
            ended, in seconds; 0 for whatever goes on in it.
        begun: Name of the deletion to go on with; None to begin one, or join one under way.

    Returns:
        False if it was used, or if that deletion was done.

    Raises:
        UnknownSessionError: There is no such session.
        ArchiveMissingError: It is archived, and this process has no archive; nothing was done.
        ArchiveError: The archive cannot be used. The deletion goes on later.
        ServerUnavailableError: The server is away. If the deletion began, it goes on later.
    """
    if begun is None:
        await _archive_with(partition, session_id)
    deletion = await delete_session(partition, session_id, begun=begun, unused_ms=1000 * unused_s)
    if deletion is None:
        return False
    ending: Deletion | None = deletion
    while ending is not None and ending.runs_left:
        ending = await delete_session(partition, session_id, begun=deletion.name)
    archive = await _archive_with(partition, session_id)
    async for run_ids in _runs(partition, archive, session_id):
        await delete_runs(partition, deletion, run_ids)
    if archive is not None and await _is_under_way(partition, deletion):
        await archive.remove(session_id)
    await delete_rest(partition, deletion, keep_ms=1000 * keep_s)
    return True


async def resume_deletions(partition: Partition, *, keep_s: int) -> int:
    """Go on with deletions whose callers went away, and forget old ones; return how many sessions.

    One that fails is tried again after a minute.

    Args:
        partition: Where the sessions live.
        keep_s: How long a deleted session is remembered, in seconds.

    Raises:
        ArchiveError: The archive cannot be used.
        ServerUnavailableError: The server is away.
    """
    deletions, now = partition.keys.deletions(), await server_ms(partition)
    due: list[bytes] = await partition.call(
        "ZRANGE", deletions, 0, now, "BYSCORE", "LIMIT", 0, _AT_ONCE
    )
    for session_id in due:
        await partition.call("ZADD", deletions, "XX", now + RESUME_MS, session_id)
        await _go_on(partition, session_id.decode(), keep_s)
    return len(due)


async def server_ms(partition: Partition) -> int:
    """Return the server's time, in milliseconds since the epoch.

    Raises:
        ServerUnavailableError: The server is away.
    """
    seconds, micros = await partition.call("TIME")
    return 1000 * int(seconds) + int(micros) // 1000


async def _go_on(partition: Partition, session_id: str, keep_s: int) -> None:
    keys = partition.keys
    state, name = await partition.call("HMGET", keys.session(session_id), "state", "deletion")
    if state == b"deleting":
        await delete(partition, session_id, keep_s=keep_s, begun=name.decode())
        return
    revision: bytes | None = await partition.call("HGET", keys.deleted(), session_id)
    if not await partition.call("EXISTS", keys.session(session_id)):
        await _remove_late(partition, session_id)
    await forget_deleted(partition, session_id, revision=(revision or b"").decode())


async def _remove_late(partition: Partition, session_id: str) -> None:
    """Remove what an archiver stored that had not heard of the deletion."""
    claimed = await partition.call("HGET", partition.keys.meta(), "archive_claimed")
    if claimed is not None and partition.archive is not None:
        await (await archive_of(partition, session_id)).remove(session_id)


async def _archive_with(partition: Partition, session_id: str) -> Archive | None:
    """Return the archive if it may have something of the session."""
    keys = partition.keys
    archived = await partition.call("HGET", keys.session(session_id), "archive_n")
    return None if archived is None else await archive_of(partition, session_id)


async def _is_under_way(partition: Partition, deletion: Deletion) -> bool:
    name: bytes | None = await partition.call(
        "HGET", partition.keys.session(deletion.session_id), "deletion"
    )
    return name is not None and name.decode() == deletion.name


async def _runs(
    partition: Partition, archive: Archive | None, session_id: str
) -> AsyncGenerator[list[str], None]:
    """Yield the ids of the session's runs by its records, page by page."""
    keys, start = partition.keys, "-"
    while page := await partition.call("XRANGE", keys.log(session_id), start, "+", "COUNT", PAGE):
        entries = [entry_of(raw) for raw in page]
        yield _run_ids(entries)
        start = f"({entries[-1].stream_id}"
    archived, segment = await partition.call(
        "HMGET", keys.session(session_id), "archived", "segment"
    )
    upto = int(archived or 0)
    while upto and archive is not None:
        try:
            entries = await archive.read_backward(
                session_id, segment.decode(), from_revision=upto, count=PAGE
            )
        except (ArchiveMissingError, ArchiveDamagedError):
            async for run_ids in _runs_by_name(partition, session_id):
                yield run_ids
            return
        yield _run_ids(entries)
        upto = entries[-1].revision - 1 if entries else 0


async def _runs_by_name(partition: Partition, session_id: str) -> AsyncGenerator[list[str], None]:
    """Yield the ids of the session's runs where records are gone: by all runs that there are."""
    keys, cursor = partition.keys, b"0"
    while True:
        cursor, names = await partition.call(
            "SCAN", cursor, "MATCH", keys.run("*"), "COUNT", _SCANNED_AT_ONCE
        )
        sessions: list[bytes | None] = await asyncio.gather(
            *(partition.call("HGET", name, "session") for name in names)
        )
        yield [
            name.decode().removeprefix(keys.run(""))
            for name, session in zip(names, sessions, strict=True)
            if session == session_id.encode()
        ]
        if cursor == b"0":
            return


def _run_ids(entries: Iterable[Entry]) -> list[str]:
    found: list[str] = []
    for entry in entries:
        if plain_name(entry.kind) == "run_queued":
            with suppress(UndecodableError):
                body = decode_body(entry.kind, entry.data)
                assert isinstance(body, RunQueued)
                found.append(body.run_id)
    return found
