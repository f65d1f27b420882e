"""Content beside a journal, packed and unpacked in a thread: a large one takes a while."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial as bound
from typing import Final

from runlane.journal.errors import ArchiveMissingError, UnknownBlobError
from runlane.journal.ownership import archive_of
from runlane.journal.partition import Partition
from runlane.journal.wire.blobs import PackedBlob, pack_blob, unpack_blob

_thread: Final = ThreadPoolExecutor(1, "blobs")
"""One of its own: tools hold the threads that all code shares for as long as they like."""


async def pack(content: bytes, media_type: str) -> PackedBlob:
    """Return content as it is stored."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_thread, pack_blob, content, media_type)


async def read_blob(partition: Partition, session_id: str, digest: str) -> bytes:
    """Return the content of a blob, from the server or else from the archive.

    Args:
        partition: Where the session lives.
        session_id: The session.
        digest: SHA-256 of the content, in hexadecimal digits.

    Raises:
        UnknownBlobError: Neither has it.
        UndecodableError: It is damaged.
        ArchiveError: It may be archived, and the archive cannot be read.
        ServerUnavailableError: The server is away.
    """
    key = partition.keys.blob(session_id, digest)
    size, pieces = await partition.call("HMGET", key, "size", "pieces")
    fields = ("data", *(f"data{index}" for index in range(1, int(pieces or 1))))
    data: list[bytes | None] = [await partition.call("HGET", key, field) for field in fields]
    stored = [piece for piece in data if piece is not None]
    if len(stored) == len(data):
        unpack = bound(unpack_blob, digest, stored, size=int(size))
        return await asyncio.get_running_loop().run_in_executor(_thread, unpack)
    trimmed = await partition.call("HGET", partition.keys.session(session_id), "trimmed")
    if not int(trimmed or 0):
        raise UnknownBlobError(session_id, digest)
    archive = await archive_of(partition, session_id)
    try:
        return await archive.get_blob(session_id, digest)
    except ArchiveMissingError as error:
        raise UnknownBlobError(session_id, digest) from error
