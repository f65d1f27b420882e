"""Segments: what goes in comes out, and nothing else does."""

import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.archive.support import SESSION, entries

from runlane.journal.archive import Entry, Segment
from runlane.journal.archive.paths import segment_name, session_folder
from runlane.journal.archive.segment import (
    HEADER_BYTES_MAX,
    decode_header,
    decode_segment,
    encode_segment,
)
from runlane.journal.errors import ArchiveDamagedError, InvalidInputError, UndecodableError

NONCE = "00ff00ff00ff"
ids = st.from_regex(r"[A-Za-z0-9._:-]{1,128}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    session_id = draw(ids)
    first = draw(st.integers(1, 10**12))
    last = first + draw(st.integers(0, 4))
    before = draw(st.integers(1, first)) if first > 1 else first
    follows = before < first and draw(st.booleans())
    return Segment(
        session_id=session_id,
        first=first,
        last=last,
        previous=segment_name(session_id, before, first - 1, NONCE) if follows else None,
        entries=tuple(
            Entry(
                stream_id=f"{revision}-{draw(st.integers(0, 2**48))}",
                branch=draw(texts),
                parent=draw(texts),
                kind=draw(texts),
                digest=draw(texts),
                at_ms=draw(st.integers(0, 2**62)),
                data=draw(st.binary(max_size=40)),
            )
            for revision in range(first, last + 1)
        ),
    )


def name_of(segment: Segment) -> str:
    return segment_name(segment.session_id, segment.first, segment.last, NONCE)


def sealed(*lines: dict[str, Any]) -> bytes:
    """Return a segment of any lines, with a check and a footer that fit them."""
    header = {**lines[0], "check": ""}
    header["check"] = hashlib.sha256(msgspec.json.encode(header)).hexdigest()[:16]
    data = msgspec.json.Encoder().encode_lines([header, *lines[1:]])
    footer = {"count": len(lines) - 1, "sha256": hashlib.sha256(data).hexdigest()}
    return data + msgspec.json.encode(footer) + b"\n"


def plain(first: int = 3, last: int = 5) -> Segment:
    return Segment(
        session_id=SESSION,
        first=first,
        last=last,
        previous=None,
        entries=tuple(entries(first, last)),
    )


def lines_of(segment: Segment) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in encode_segment(segment).splitlines()[:-1]]


@given(segments())
def test_a_segment_comes_back_as_it_was(segment: Segment) -> None:
    data = encode_segment(segment)
    assert decode_segment(name_of(segment), data) == segment
    header = decode_header(name_of(segment), data[:HEADER_BYTES_MAX])
    assert (header.session, header.previous) == (segment.session_id, segment.previous)


@given(segments(), st.data())
def test_a_segment_that_was_cut_is_damaged(segment: Segment, data: st.DataObject) -> None:
    whole = encode_segment(segment)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ArchiveDamagedError, match="line"):
        decode_segment(name_of(segment), whole[:cut])


@given(segments(), st.data())
def test_a_segment_with_a_flipped_byte_is_damaged(segment: Segment, data: st.DataObject) -> None:
    damaged = bytearray(encode_segment(segment))
    place = data.draw(st.integers(0, len(damaged) - 1))
    damaged[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ArchiveDamagedError):
        decode_segment(name_of(segment), bytes(damaged))


@given(segments(), st.data())
def test_a_header_with_a_flipped_byte_is_damaged(segment: Segment, data: st.DataObject) -> None:
    damaged = bytearray(encode_segment(segment))
    place = data.draw(st.integers(0, damaged.index(b"\n")))
    damaged[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ArchiveDamagedError):
        decode_header(name_of(segment), bytes(damaged[:HEADER_BYTES_MAX]))


@given(segments(), st.binary(min_size=1, max_size=30))
def test_a_segment_with_something_behind_it_is_damaged(segment: Segment, more: bytes) -> None:
    with pytest.raises(ArchiveDamagedError):
        decode_segment(name_of(segment), encode_segment(segment) + more)


@given(segments(), segments())
def test_a_segment_under_the_name_of_another_one_is_damaged(one: Segment, other: Segment) -> None:
    assume(name_of(one) != name_of(other))
    with pytest.raises(ArchiveDamagedError, match="another segment"):
        decode_segment(name_of(one), encode_segment(other))


def test_the_longest_header_is_read_whole() -> None:
    large = 10**19 - 1
    segment = Segment(
        session_id="s" * 128,
        first=large,
        last=large,
        previous=segment_name("s" * 128, large - 1, large - 1, NONCE),
        entries=tuple(entries(large, large)),
    )
    assert encode_segment(segment).index(b"\n") < HEADER_BYTES_MAX


def test_lines_can_be_read_without_runlane() -> None:
    header, first, *_ = lines_of(plain())
    assert (header["format"], header["version"]) == ("runlane-segment", 1)
    assert (header["session"], header["first"], header["last"]) == (SESSION, 3, 5)
    assert list(first) == ["id", "b", "p", "k", "h", "t", "d"]


def test_a_newer_version_is_told_as_such() -> None:
    header, *rest = lines_of(plain())
    with pytest.raises(UndecodableError, match=r"version 2.*upgrade this process"):
        decode_segment(name_of(plain()), sealed({**header, "version": 2}, *rest))


def test_damage_is_told_by_segment_line_and_reason() -> None:
    header, one, two, three = lines_of(plain())
    name = name_of(plain())
    for lines, line, reason in [
        ((header, one, three, two), 3, "not of revision 4"),
        ((header, one, two), 4, "2 records, not 3 to 5"),
        ((header, one, two, three, {**three, "id": "6-7f"}), 6, "4 records, not 3 to 5"),
        ((header, one, {**two, "t": "?"}, three), 3, "Expected `int`"),
        ((header,), 2, "0 records"),
        (({**header, "previous": "elsewhere"}, one, two, three), 1, "no name of a segment"),
    ]:
        with pytest.raises(ArchiveDamagedError, match=reason) as damaged:
            decode_segment(name, sealed(*lines))
        assert (damaged.value.path, damaged.value.line) == (name, line)
        assert name in str(damaged.value)


def test_records_with_a_gap_are_not_archived() -> None:
    segment = plain()
    other = segment_name("another", 1, 2, NONCE)
    for gap in (
        replace(segment, entries=segment.entries[1:]),
        replace(segment, entries=(segment.entries[0], *segment.entries[:2])),
        replace(segment, entries=()),
        replace(segment, last=6),
        replace(segment, first=6, last=5, entries=()),
        replace(segment, previous=segment_name(SESSION, 1, 1, NONCE)),
        replace(segment, previous=other),
        replace(segment, previous="../../etc"),
    ):
        with pytest.raises(InvalidInputError, match="nothing was written"):
            encode_segment(gap)


def test_folders_of_sessions_are_spread_and_safe() -> None:
    folder = session_folder("..")
    assert folder[:2] == folder[3:5]
    assert len(folder) == 3 + 64
