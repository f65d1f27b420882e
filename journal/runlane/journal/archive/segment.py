"""A segment: consecutive records of a session as one immutable object.

It is text, one JSON value a line: a header, the records as they lay in the stream, and a footer
with their number and the SHA-256 of all bytes before it. The header names the segment before it
in the session and has a check of its own, so that the chain can be followed without reading all
of it.
"""

import hashlib
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from runlane.journal.archive.paths import SegmentName, parse_segment_name, session_folder
from runlane.journal.errors import ArchiveDamagedError, InvalidInputError

T = TypeVar("T")

VERSION: Final = 1
HEADER_BYTES_MAX: Final = 1024
"""No header is longer: a session id has up to 128 bytes, the name of a segment up to 123."""


class Entry(
    Struct,
    frozen=True,
    kw_only=True,
    rename={
        "stream_id": "id",
        "branch": "b",
        "parent": "p",
        "kind": "k",
        "digest": "h",
        "at_ms": "t",
        "data": "d",
    },
):
    """A record as it lay in the stream.

    Attributes:
        stream_id: `<revision>-<inc>`.
        branch: Its branch.
        parent: Record id of its parent; empty for none.
        kind: What happened, and the version that it is stored in.
        digest: Its chain hash.
        at_ms: Server time of the append, in milliseconds since the epoch.
        data: The content, exactly as it was stored; base64 in the segment.
    """

    stream_id: str
    branch: str
    parent: str
    kind: str
    digest: str
    at_ms: int
    data: bytes

    @property
    def revision(self) -> int:
        """Its number in the session."""
        return int(self.stream_id.partition("-")[0])


class Segment(Struct, frozen=True, kw_only=True):
    """Consecutive records of a session.

    Attributes:
        session_id: The session.
        first: Revision of the first entry.
        last: Revision of the last entry.
        previous: Name of the segment that ends where this one begins; None for the first.
        entries: The records, oldest first.
    """

    session_id: str
    first: int
    last: int
    previous: str | None
    entries: tuple[Entry, ...]


class Header(Struct, frozen=True, kw_only=True):
    """The first line of a segment; `check` is a hash of its other fields."""

    format: Literal["runlane-segment"] = "runlane-segment"
    version: int
    session: str
    first: int
    last: int
    previous: str | None
    check: str = ""


class _Format(Struct):
    """What a header of any version has."""

    format: Literal["runlane-segment"]
    version: int


class _Footer(Struct):
    count: int
    sha256: str


class _Flaw(Struct):
    """The first line that does not fit the others, and why."""

    line: int
    reason: str


_encoder: Final = msgspec.json.Encoder()
_format_decoder: Final = msgspec.json.Decoder(_Format)
_header_decoder: Final = msgspec.json.Decoder(Header)
_entry_decoder: Final = msgspec.json.Decoder(Entry)


def encode_segment(segment: Segment) -> bytes:
    """Return the bytes of a segment.

    Raises:
        InvalidInputError: The entries are not the revisions from first to last, or `previous`
            does not end right before them.
    """
    header = Header(
        version=VERSION,
        session=segment.session_id,
        first=segment.first,
        last=segment.last,
        previous=segment.previous,
    )
    flaw = _flaw_of_header(header) or _flaw_of_entries(segment)
    if flaw:
        raise InvalidInputError(
            f"records of session {segment.session_id!r} cannot be archived: {flaw.reason}; "
            "nothing was written"
        )
    lines = _encoder.encode_lines([replace(header, check=_check(header)), *segment.entries])
    return lines + _footer(len(segment.entries), lines)


def decode_header(name: str, data: bytes) -> Header:
    """Return the header of a segment, of which `data` is at least the first line.

    Raises:
        ArchiveDamagedError: It is damaged, of a newer version, or that of another segment.
    """
    line, end, _ = data.partition(b"\n")
    version = _decode(name, 1, line, _format_decoder).version
    if version != VERSION:
        raise ArchiveDamagedError(
            path=name,
            line=1,
            reason=f"it has version {version}, this runlane reads {VERSION}",
            advice="upgrade this process",
        )
    header = _decode(name, 1, line, _header_decoder)
    if not end or header.check != _check(replace(header, check="")):
        raise ArchiveDamagedError(path=name, line=1, reason="the header is damaged")
    described = SegmentName(session_folder(header.session), header.first, header.last)
    if described != parse_segment_name(name):
        raise ArchiveDamagedError(path=name, line=1, reason="it is another segment's header")
    if flaw := _flaw_of_header(header):
        raise ArchiveDamagedError(path=name, line=flaw.line, reason=flaw.reason)
    return header


def decode_segment(name: str, data: bytes) -> Segment:
    """Return the segment that `data` holds.

    Raises:
        ArchiveDamagedError: It is damaged, cut, of a newer version, or another segment.
    """
    header = decode_header(name, data)
    lines = data.removesuffix(b"\n").split(b"\n")
    if not data.endswith(b"\n"):
        raise ArchiveDamagedError(path=name, line=len(lines), reason="the rest is missing")
    segment = Segment(
        session_id=header.session,
        first=header.first,
        last=header.last,
        previous=header.previous,
        entries=tuple(
            _decode(name, number, line, _entry_decoder)
            for number, line in enumerate(lines[1:-1], start=2)
        ),
    )
    if flaw := _flaw_of_entries(segment):
        raise ArchiveDamagedError(path=name, line=flaw.line, reason=flaw.reason)
    before = len(data) - len(lines[-1]) - 1
    if data[before:] != _footer(len(segment.entries), data[:before]):
        raise ArchiveDamagedError(
            path=name, line=len(lines), reason="the footer does not fit what is before it"
        )
    return segment


def _decode(name: str, number: int, line: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ArchiveDamagedError(path=name, line=number, reason=str(error)) from error


def _check(header: Header) -> str:
    return hashlib.sha256(_encoder.encode(header)).hexdigest()[:16]


def _footer(count: int, lines: bytes) -> bytes:
    return _encoder.encode(_Footer(count, hashlib.sha256(lines).hexdigest())) + b"\n"


def _flaw_of_header(header: Header) -> _Flaw | None:
    if header.previous is None:
        return None
    try:
        previous = parse_segment_name(header.previous)
    except InvalidInputError as error:
        return _Flaw(1, str(error))
    if (previous.folder, previous.last) != (session_folder(header.session), header.first - 1):
        return _Flaw(1, f"revision {header.first} does not follow {header.previous}")
    return None


def _flaw_of_entries(segment: Segment) -> _Flaw | None:
    revisions = range(segment.first, segment.last + 1)
    for line, (revision, entry) in enumerate(zip(revisions, segment.entries, strict=False), 2):
        if not entry.stream_id.startswith(f"{revision}-"):
            return _Flaw(line, f"{entry.stream_id!r} is not of revision {revision}")
    count = len(segment.entries)
    if count == 0 or count != len(revisions):
        return _Flaw(count + 2, f"{count} records, not {segment.first} to {segment.last}")
    return None
