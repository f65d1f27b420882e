"""The archive as readers and the archiver use it: records by revision, blobs by digest."""

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from runlane.journal.archive.cache import Cache
from runlane.journal.archive.paths import (
    MARKER,
    blob_path,
    parse_segment_name,
    segment_name,
    session_folder,
)
from runlane.journal.archive.segment import (
    HEADER_BYTES_MAX,
    Entry,
    Segment,
    decode_header,
    decode_segment,
    encode_segment,
)
from runlane.journal.archive.store import ObjectStore
from runlane.journal.errors import (
    ArchiveDamagedError,
    ArchiveError,
    ArchiveMissingError,
    InvalidInputError,
    RunlaneError,
)

T = TypeVar("T")

THREADS: Final = 4
SEGMENT_BYTES: Final = 32 * 1024 * 1024
"""How much of decoded segments a process keeps."""
ENTRY_BYTES: Final = 600
"""What an entry takes in memory besides its content."""
LINKS: Final = 10_000
"""How many segments' predecessors a process remembers; each takes about 0.5 kB."""


class Archive:
    """Segments and blobs of sessions in a store.

    Which segment is a session's last one is known to the server alone. From there the chain is
    followed back; what else lies in the store, left by an archiver that was overtaken, is never
    read. Segments do not change, so what was read is kept for a while.

    Every method raises ArchiveError if the store fails or does not answer in time, and
    ArchiveMissingError or ArchiveDamagedError for an object that is not there or not what was
    written.

    Attributes:
        owner: The deployment that it was found to belong to; None before anybody looked.
    """

    def __init__(self, store: ObjectStore, *, deadline_s: float = 30.0) -> None:
        """Use a store.

        Args:
            store: Where the objects are.
            deadline_s: How long to wait for one object, in seconds.
        """
        self.owner: str | None = None
        self._store = store
        self._deadline_s = deadline_s
        # Threads of its own: a store that hangs must not stop what else needs a thread.
        self._threads = ThreadPoolExecutor(THREADS, "archive")
        self._segments = Cache[Segment](SEGMENT_BYTES)
        self._links = Cache[tuple[str | None]](LINKS)

    async def write(
        self, session_id: str, entries: Sequence[Entry], *, previous: str | None
    ) -> str:
        """Store consecutive records as a new segment and return its name.

        It is durable, and belongs to the session only once the server names it.

        Args:
            session_id: The session.
            entries: The records, oldest first; at least one.
            previous: Name of the session's last segment, which ends right before them.

        Raises:
            InvalidInputError: There is a gap in or before the records; nothing was written.
        """
        first, last = entries[0].revision, entries[-1].revision
        name = segment_name(session_id, first, last, os.urandom(6).hex())
        segment = Segment(
            session_id=session_id,
            first=first,
            last=last,
            previous=previous,
            entries=tuple(entries),
        )
        await self._call(lambda: self._store.put(name, encode_segment(segment)))
        self._links.put(name, (previous,), weight=1)
        return name

    async def read_forward(
        self, session_id: str, last_segment: str, *, after: int, upto: int, count: int
    ) -> list[Entry]:
        """Return up to `count` records after revision `after` and not after `upto`, oldest first.

        Args:
            session_id: The session.
            last_segment: Name of its last segment, from the server.
            after: The revision before the first one to return.
            upto: The last revision to return.
            count: At most this many records.
        """
        names = await self._chain(session_id, last_segment, back_to=after + 1)
        first = max(after + 1, parse_segment_name(names[-1]).first)
        return await self._read(names, first, min(upto, first + count - 1))

    async def read_backward(
        self, session_id: str, last_segment: str, *, from_revision: int, count: int
    ) -> list[Entry]:
        """Return up to `count` records from revision `from_revision` back, newest first.

        Args:
            session_id: The session.
            last_segment: Name of its last segment, from the server.
            from_revision: The first revision to return.
            count: At most this many records.
        """
        last = min(from_revision, parse_segment_name(last_segment).last)
        names = await self._chain(session_id, last_segment, back_to=last - count + 1)
        return (await self._read(names, last - count + 1, last))[::-1]

    async def sweep(self, session_id: str, last_segment: str | None) -> int:
        """Remove segments that the chain does not name; return how many there were.

        They were left by archivers that died, or were overtaken, before the server knew of them.

        Args:
            session_id: The session.
            last_segment: Name of its last segment, from the server; None if it has none.
        """
        names = await self._call(lambda: self._store.names(session_folder(session_id)))
        if last_segment and not _overlap(names, last_segment):
            return 0
        chain = await self._chain(session_id, last_segment, back_to=0) if last_segment else []
        left = [name for name in names if name not in set(chain)]
        for name in left:
            await self._call(partial(self._store.remove, name))
        return len(left)

    async def remove(self, session_id: str) -> None:
        """Remove all that is archived of a session; nothing happens if nothing is."""
        await self._call(lambda: self._store.remove_tree(session_folder(session_id)))

    async def put_blob(self, session_id: str, digest: str, data: bytes) -> None:
        """Store a blob; it is durable when this returns, and may be stored again.

        Args:
            session_id: The session that it belongs to.
            digest: SHA-256 of `data` in hexadecimal digits.
            data: The bytes.
        """
        await self._call(lambda: self._store.put(blob_path(session_id, digest), data))

    async def get_blob(self, session_id: str, digest: str) -> bytes:
        """Return a blob."""
        return await self._call(lambda: self._intact(blob_path(session_id, digest), digest))

    async def deployment(self) -> str | None:
        """Return the id of the deployment that claimed the store; None if none has."""
        try:
            return (await self._call(lambda: self._store.get(MARKER))).decode(errors="replace")
        except ArchiveMissingError:
            return None

    async def claim(self, deployment_id: str) -> str:
        """Claim the store for a deployment unless one has it, and return which one has it now.

        Two deployments that claim a new store at the same moment may both be told that it is
        theirs; `deployment` tells them apart afterwards.
        """
        held = await self.deployment()
        if held is None:
            await self._call(lambda: self._store.put(MARKER, deployment_id.encode()))
            held = await self.deployment()
        return held or deployment_id

    async def _chain(self, session_id: str, last_segment: str, *, back_to: int) -> list[str]:
        """Return the names of segments, newest first, back to the one with that revision."""
        if parse_segment_name(last_segment).folder != session_folder(session_id):
            raise InvalidInputError(f"{last_segment} is no segment of session {session_id!r}")
        names: list[str] = []
        name: str | None = last_segment
        while name is not None:
            names.append(name)
            if parse_segment_name(name).first <= back_to:
                break
            name = await self._previous(name)
        return names

    async def _read(self, names: list[str], first: int, last: int) -> list[Entry]:
        """Return the records from revision `first` to `last` of a chain, oldest first."""
        entries: list[Entry] = []
        for name in reversed(names):
            found = parse_segment_name(name)
            if found.first <= last and first <= found.last:
                segment = await self._segment(name)
                start = max(first - found.first, 0)
                entries += segment.entries[start : last - found.first + 1]
        return entries

    async def _previous(self, name: str) -> str | None:
        known = self._links.get(name)
        if known is None:
            header = await self._call(
                lambda: decode_header(name, self._store.get(name, limit=HEADER_BYTES_MAX))
            )
            known = (header.previous,)
            self._links.put(name, known, weight=1)
        return known[0]

    async def _segment(self, name: str) -> Segment:
        segment = self._segments.get(name)
        if segment is None:
            segment = await self._call(lambda: decode_segment(name, self._store.get(name)))
            weight = sum(len(entry.data) + ENTRY_BYTES for entry in segment.entries)
            self._segments.put(name, segment, weight=weight)
            self._links.put(name, (segment.previous,), weight=1)
        return segment

    def _intact(self, path: str, digest: str) -> bytes:
        data = self._store.get(path)
        found = hashlib.sha256(data).hexdigest()
        if found != digest:
            raise ArchiveDamagedError(path=path, line=None, reason=f"its SHA-256 is {found}")
        return data

    async def _call(self, work: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(self._deadline_s):
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except RunlaneError:
            raise
        except TimeoutError as error:
            raise ArchiveError(
                f"the archive did not answer within {self._deadline_s:g} s; check the store that "
                "RUNLANE_ARCHIVE names. What was asked may still be done"
            ) from error
        except Exception as error:  # what stores raise has no base class of its own
            raise ArchiveError(
                f"the archive cannot be used: {type(error).__name__}: {error}; check the store "
                "that RUNLANE_ARCHIVE names"
            ) from error


def _overlap(names: Sequence[str], last_segment: str) -> bool:
    """Return whether segments hold more than the records up to the last one, each once."""
    spans = [parse_segment_name(name) for name in names]
    first = min((span.first for span in spans), default=1)
    size = sum(span.last - span.first + 1 for span in spans)
    return size > parse_segment_name(last_segment).last - first + 1
