"""An archiver beside a session that grows: what is older than the last checkpoint goes to files."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from bench.history import History
from runlane.journal.archive.archive import Archive
from runlane.journal.archive.opening import open_store
from runlane.journal.partition import Partition
from runlane.journal.transitions.archive_claim import archive_claim
from runlane.journal.upkeep import archive_session

COLD_S: Final = 1
"""How long a session of a bench rests before all of it goes to the archive."""

_TURNS_BETWEEN: Final = 10
_SESSIONS_AT_ONCE: Final = 100
_WATCH_S: Final = 0.05
_COOLING_TIMEOUT_S: Final = 60.0


def archive_in(folder: Path) -> Archive:
    """Return the archive in a folder, of which this process remembers nothing yet."""
    return Archive(open_store(str(folder)))


async def archive_due(partition: Partition) -> None:
    """Archive all that may go now."""
    for claimed in await archive_claim(partition, worker_id="bench", count=_SESSIONS_AT_ONCE):
        await archive_session(partition, claimed)


async def grow_archived(
    partition: Partition, history: History, records: int
) -> AsyncIterator[None]:
    """Write turns until a session has so many records; the archiver looks after every ten.

    Yields before it does.
    """
    while history.records < records:
        await history.write_turn()
        if not history.turns % _TURNS_BETWEEN:
            yield
            await archive_due(partition)


async def cool_down(partition: Partition, session_ids: Sequence[str]) -> None:
    """Wait until the archiver has taken all records of these sessions."""
    async with asyncio.timeout(_COOLING_TIMEOUT_S):
        while await _left(partition, session_ids):
            await asyncio.sleep(_WATCH_S)
            await archive_due(partition)


async def _left(partition: Partition, session_ids: Sequence[str]) -> int:
    lengths = [await partition.call("XLEN", partition.keys.log(name)) for name in session_ids]
    return sum(lengths)
