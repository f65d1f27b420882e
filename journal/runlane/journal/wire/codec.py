"""Bytes: msgspec MessagePack, zstd above 1 KiB, and the chain hash of records."""

import hashlib
from typing import Any, Final, TypeVar

import msgspec
import zstandard

from runlane.journal.errors import InvalidInputError, UndecodableError
from runlane.journal.wire.jobs import AnyJob
from runlane.journal.wire.records import KIND_OF, KINDS, AnyBody

T = TypeVar("T")

COMPRESS_ABOVE_BYTES: Final = 1024
DECODED_BYTES_MAX: Final = 64 * 1024 * 1024
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
"""RFC 8878, 3.1.1. No record begins with it: 0x28 as MessagePack is a number, records are maps."""

_encoder = msgspec.msgpack.Encoder()
_compressor = zstandard.ZstdCompressor(level=1)
_decompressor = zstandard.ZstdDecompressor()
_body_decoders: Final = {kind: msgspec.msgpack.Decoder(body) for kind, body in KINDS.items()}
_job_decoder: Final = msgspec.msgpack.Decoder(AnyJob)


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


def decode(data: bytes, decoder: msgspec.msgpack.Decoder[T]) -> T:
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
    """Return the kind and the bytes of a record's content."""
    return KIND_OF[type(body)], encode(body)


def decode_body(kind: str, data: bytes) -> AnyBody:
    """Return the content of a record.

    Raises:
        UndecodableError: The kind is unknown or the bytes do not fit it.
    """
    decoder = _body_decoders.get(kind)
    if decoder is None:
        raise UndecodableError(f"unknown record kind {kind!r}; a newer runlane may have written it")
    return decode(data, decoder)


def decode_job(data: bytes) -> AnyJob:
    """Return the job of a run.

    Raises:
        UndecodableError: The bytes are damaged or no job.
    """
    return decode(data, _job_decoder)


def chain_hash(parent_hash: str, branch_id: str, kind: str, data: bytes) -> str:
    """Return the 96-bit hash of a record: equal hashes mean equal histories.

    The first 24 hexadecimal digits of SHA-1 over `parent|branch|kind|data`; the first three
    never contain a bar. SHA-1 because Lua scripts of the server can compute it too. It
    proves order, content and retries among writers who hold a fence; it is no signature.
    """
    head = f"{parent_hash}|{branch_id}|{kind}|".encode()
    return hashlib.sha1(head + data, usedforsecurity=False).hexdigest()[:24]
