"""Bytes: msgspec MessagePack, zstd above 1 KiB, and the chain hash of records."""

import hashlib
from typing import Any, Final, TypeVar

import msgspec
import zstandard

from runlane.journal.errors import InvalidInputError, UndecodableError
from runlane.journal.wire.jobs import AnyJob, ContinueJob, FollowUpJob, RunJob
from runlane.journal.wire.records import KINDS, AnyBody
from runlane.journal.wire.tree import Jump
from runlane.journal.wire.versions import (
    JOB_UPGRADES,
    JUMP_UPGRADES,
    RECORD_UPGRADES,
    Decodes,
    TaggedDecoder,
    Versions,
)

T = TypeVar("T")

COMPRESS_ABOVE_BYTES: Final = 1024
DECODED_BYTES_MAX: Final = 64 * 1024 * 1024
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
"""RFC 8878, 3.1.1. No record begins with it: 0x28 as MessagePack is a number, records are maps."""

_encoder = msgspec.msgpack.Encoder()
_compressor = zstandard.ZstdCompressor(level=-1)  # half the time of level 1, for a fourth more
_decompressor = zstandard.ZstdDecompressor()
_bodies: Final = Versions("record kind", KINDS, RECORD_UPGRADES)
_jobs: Final = TaggedDecoder(
    msgspec.msgpack.Decoder(AnyJob),
    Versions[AnyJob](
        "job", {"run": RunJob, "follow_up": FollowUpJob, "continue": ContinueJob}, JOB_UPGRADES
    ),
)
_jumps: Final = TaggedDecoder(
    msgspec.msgpack.Decoder(Jump), Versions("jump", {"jump": Jump}, JUMP_UPGRADES)
)


def encode(value: Any) -> bytes:
    """Return the bytes of a wire value.

    Raises:
        InvalidInputError: It holds text that is not UTF-8 (a lone surrogate) or is nested too
            deep.
    """
    try:
        data = _encoder.encode(value)
    except (UnicodeEncodeError, RecursionError, OverflowError) as error:
        raise InvalidInputError(f"this value cannot be stored: {error}") from error
    return _compressor.compress(data) if len(data) > COMPRESS_ABOVE_BYTES else data


def decode(data: bytes, decoder: Decodes[T]) -> T:
    """Return what `encode` was given.

    Raises:
        UndecodableError: The bytes are damaged or of another type.
    """
    try:
        if data.startswith(_ZSTD_MAGIC):
            data = _decompress(data)
        return decoder.decode(data)
    except (msgspec.MsgspecError, zstandard.ZstdError, UnicodeDecodeError, RecursionError) as error:
        raise UndecodableError(f"{len(data)} bytes cannot be decoded: {error}") from error


def _decompress(data: bytes) -> bytes:
    size = zstandard.frame_content_size(data)
    if not 0 <= size <= DECODED_BYTES_MAX:
        raise UndecodableError(f"compressed data claims {size} bytes")
    return _decompressor.decompress(data, max_output_size=DECODED_BYTES_MAX)


def encode_body(body: AnyBody) -> tuple[str, bytes]:
    """Return what the current version of a record is stored as, and the bytes of its content."""
    return _bodies.stored_name(type(body)), encode(body)


def decode_body(kind: str, data: bytes) -> AnyBody:
    """Return the content of a record.

    Args:
        kind: What it is stored as: its kind, and its version from 2 on.
        data: Its bytes.

    Raises:
        UndecodableError: The kind or its version is unknown, or the bytes do not fit it.
    """
    return decode(data, _bodies.decoder(kind))


def decode_job(data: bytes) -> AnyJob:
    """Return the job of a run.

    Raises:
        UndecodableError: The bytes are damaged, no job, or of a newer version.
    """
    return decode(data, _jobs)


def decode_jump(data: bytes) -> Jump:
    """Return where a branch goes on from.

    Raises:
        UndecodableError: The bytes are damaged, no jump, or of a newer version.
    """
    return decode(data, _jumps)


def chain_hash(parent_hash: str, branch_id: str, kind: str, data: bytes) -> str:
    """Return the 96-bit hash of a record: equal hashes mean equal histories.

    The first 24 hexadecimal digits of SHA-1 over `parent|branch|kind|data`; the first three
    never contain a bar. SHA-1 because Lua scripts of the server can compute it too. It
    proves order, content and retries among writers who hold a fence; it is no signature.
    """
    head = f"{parent_hash}|{branch_id}|{kind}|".encode()
    return hashlib.sha1(head + data, usedforsecurity=False).hexdigest()[:24]
