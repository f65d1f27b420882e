"""A session out into a file that EJAgent reads."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from runlane.journal.errors import UnknownSessionError
from runlane.journal.partition import Partition
from runlane.journal.path import read_path
from runlane.journal.reader import read_page
from runlane.journal.transfer.jsonl_writer import JsonlWriter
from runlane.journal.tree import unless_gone
from runlane.journal.wire.records import Record, RunContinued, RunStarted
from runlane.journal.wire.tree import BranchPromoted
from runlane.producer.files import NewFile, Place, Progress

NO_AGENT: Final = "agent"
"""The name in the file where the session has none: EJAgent needs one."""


class ExportReport(Struct, frozen=True, kw_only=True):
    """What was exported.

    Attributes:
        session_id: The session.
        revision: The number of the last record that was read.
        lines: Records of the file. It has some that the session has not, and not all that it has.
        size: Its bytes.
    """

    session_id: str
    revision: int
    lines: int
    size: int


async def export_session(
    partition: Partition, session_id: str, target: Place, *, progress: Progress | None
) -> ExportReport:
    """Write a session as it is now, whatever goes on in it meanwhile.

    Raises:
        UnknownSessionError: There is no such session, or it was deleted meanwhile.
        SessionClosedError: It is being deleted.
        RecordMissingError: The journal lacks a record that others build on.
        UndecodableError: A record is damaged or of a newer version.
        ArchiveError: Archived records cannot be read.
        ServerUnavailableError: The server is away.
        OSError: The file cannot be written.
    """
    key = partition.keys.session(session_id)
    agent, rev = await partition.call("HMGET", key, "agent", "rev")
    if rev is None:
        raise UnknownSessionError(session_id)
    last = int(rev)
    file = await asyncio.to_thread(NewFile, target)
    try:
        writer: JsonlWriter | None = None
        lines = 0
        async with unless_gone(partition, session_id):
            async for page in _pages(partition, session_id, last):
                name = agent.decode() if agent else _agent_in(page)
                writer = writer or JsonlWriter(session_id, name)
                followed = await _followed(partition, session_id, page)
                lines += await asyncio.to_thread(_write, file, writer, page, followed)
                if progress is not None:
                    progress(page[-1].revision, last)
        await asyncio.to_thread(file.finish)
    finally:
        await asyncio.to_thread(file.abandon)
    return ExportReport(session_id=session_id, revision=last, lines=lines, size=file.size)


async def _pages(partition: Partition, session_id: str, last: int) -> AsyncIterator[list[Record]]:
    """Yield the records up to revision `last`; raise if they vanish."""
    after = 0
    while after < last:
        found = await read_page(partition, session_id, after=after)
        page = [record for record in found if record.revision <= last]
        if not page:
            raise UnknownSessionError(session_id)
        yield page
        after = page[-1].revision


def _agent_in(page: Sequence[Record]) -> str:
    """Return the agent that ran in a session which is bound to none."""
    bodies = (record.body for record in page)
    began = (body.agent for body in bodies if isinstance(body, RunStarted | RunContinued))
    return next(filter(None, began), NO_AGENT)


async def _followed(
    partition: Partition, session_id: str, page: Sequence[Record]
) -> dict[str, list[Record]]:
    """Return record id → the path to its parent, for each promotion."""
    return {
        record.record_id: (await read_path(partition, session_id, record.parent_id)).records
        for record in page
        if isinstance(record.body, BranchPromoted)
    }


def _write(
    file: NewFile,
    writer: JsonlWriter,
    page: Sequence[Record],
    followed: Mapping[str, Sequence[Record]],
) -> int:
    lines = [
        line for record in page for line in writer.lines(record, followed.get(record.record_id, ()))
    ]
    file.write(b"".join(lines))
    return len(lines)
