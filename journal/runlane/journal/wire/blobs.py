"""Content that is too large for a record: its name, and how it is stored beside the journal."""

import hashlib
from collections.abc import Sequence
from typing import Final

import zstandard
from msgspec import Struct

from runlane.journal.errors import UndecodableError

PIECE_BYTES: Final = 1024 * 1024
"""A larger one would keep the server and this process from all else for milliseconds."""


class BlobRef(Struct, frozen=True, kw_only=True):
    """Names bytes that a session keeps beside its journal.

    Attributes:
        digest: SHA-256 of the bytes, in hexadecimal digits.
        size: Their number.
        media_type: What they are, such as `text/plain`.
    """

    digest: str
    size: int
    media_type: str


class PackedBlob(Struct, frozen=True):
    """Content as it is stored.

    Attributes:
        ref: Its name.
        pieces: At least one; joined they are the content, compressed by zstd if that is shorter.
    """

    ref: BlobRef
    pieces: tuple[bytes, ...]


def pack_blob(content: bytes, media_type: str) -> PackedBlob:
    """Return content as it is stored; that takes a few milliseconds a megabyte."""
    digest = hashlib.sha256(content).hexdigest()
    compressed = zstandard.ZstdCompressor(level=1).compress(content)
    data = compressed if len(compressed) < len(content) else content
    return PackedBlob(
        ref=BlobRef(digest=digest, size=len(content), media_type=media_type),
        pieces=tuple(
            data[start : start + PIECE_BYTES] for start in range(0, len(data) or 1, PIECE_BYTES)
        ),
    )


def unpack_blob(digest: str, pieces: Sequence[bytes], *, size: int) -> bytes:
    """Return the content of stored data.

    Args:
        digest: SHA-256 of the content, in hexadecimal digits.
        pieces: What is stored.
        size: Bytes of the content.

    Raises:
        UndecodableError: The data is damaged.
    """
    data = b"".join(pieces)
    try:
        content = data if len(data) == size else _decompress(data, size)
    except zstandard.ZstdError as error:
        raise UndecodableError(f"blob {digest} cannot be decompressed: {error}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise UndecodableError(f"blob {digest} is damaged: its SHA-256 is {found}")
    return content


def _decompress(data: bytes, size: int) -> bytes:
    claimed = zstandard.frame_content_size(data)
    if claimed != size:
        raise zstandard.ZstdError(f"it claims {claimed} bytes, not {size}")
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
