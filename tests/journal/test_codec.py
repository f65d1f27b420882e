"""Bytes and back; whatever else the bytes are, the error is ours."""

import os
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st
from tests.journal.driving import Driver
from tests.journal.strategies import values_of

from runlane.journal.errors import InvalidInputError, UndecodableError
from runlane.journal.wire import codec
from runlane.journal.wire.codec import (
    COMPRESS_ABOVE_BYTES,
    chain_hash,
    decode_body,
    decode_job,
    encode,
    encode_body,
)
from runlane.journal.wire.jobs import AnyJob, RunJob
from runlane.journal.wire.records import KINDS, AbortRequested, AnyBody

MAGIC = b"\x28\xb5\x2f\xfd"


@given(st.one_of([values_of(body) for body in KINDS.values()]))
def test_every_body_comes_back_as_it_was(body: AnyBody) -> None:
    assert decode_body(*encode_body(body)) == body


@given(values_of(AnyJob))
def test_every_job_comes_back_as_it_was(job: AnyJob) -> None:
    assert decode_job(encode(job)) == job


@given(st.sampled_from(sorted(KINDS)), st.binary())
@example("run_started", b"\x81\xa6run_id\xa1\xff")
@example("run_finished", b"\x91" * 5000)
@example("run_queued", MAGIC)
@example("run_queued", b"")
def test_any_bytes_are_decoded_or_undecodable(kind: str, data: bytes) -> None:
    for damaged in (data, MAGIC + data, zstandard.ZstdCompressor().compress(data)):
        try:
            decode_body(kind, damaged)
        except UndecodableError:
            continue


@given(st.binary())
def test_any_bytes_are_a_job_or_undecodable(data: bytes) -> None:
    with pytest.raises(UndecodableError):
        decode_job(data)


@given(values_of(KINDS["run_started"]), st.data())
def test_a_flipped_byte_is_never_another_error(body: AnyBody, data: st.DataObject) -> None:
    kind, encoded = encode_body(body)
    at = data.draw(st.integers(0, len(encoded) - 1))
    damaged = (
        encoded[:at] + bytes([encoded[at] ^ data.draw(st.integers(1, 255))]) + encoded[at + 1 :]
    )
    try:
        decode_body(kind, damaged)
    except UndecodableError:
        return


def test_an_unknown_kind_is_undecodable() -> None:
    with pytest.raises(UndecodableError, match="teleported"):
        decode_body("teleported", b"\x80")


def test_only_what_is_over_the_limit_is_compressed() -> None:
    empty = len(msgspec.msgpack.encode(""))
    at_limit = "x" * (COMPRESS_ABOVE_BYTES - empty - 2)  # a longer text has a longer header
    assert len(encode(at_limit)) == COMPRESS_ABOVE_BYTES
    assert not encode(at_limit).startswith(MAGIC)
    assert encode(at_limit + "x").startswith(MAGIC)
    assert len(encode(at_limit + "x")) < COMPRESS_ABOVE_BYTES


def test_a_large_record_comes_back_as_it_was() -> None:
    reason = os.urandom(300_000).hex()
    body = AbortRequested(run_id="r", branch_id="main", reason=reason)
    assert decode_body(*encode_body(body)) == body


def test_a_compressed_record_cannot_claim_endless_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "DECODED_BYTES_MAX", 100_000)
    bomb = zstandard.ZstdCompressor().compress(b"\0" * 100_001)
    with pytest.raises(UndecodableError, match="claims 100001 bytes"):
        decode_body("run_queued", bomb)


def test_a_compressed_record_of_unknown_size_is_refused() -> None:
    stream = zstandard.ZstdCompressor().compressobj()
    data = stream.compress(b"\0" * 5000) + stream.flush()
    with pytest.raises(UndecodableError):
        decode_body("run_queued", data)


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    ["\ud800", {"text": "a\udfffb"}, nested(100_000), 2**64, -(2**63) - 1],
    ids=["lone surrogate", "surrogate inside", "deep", "large integer", "small integer"],
)
def test_what_cannot_be_stored_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInputError):
        encode(value)


def test_a_task_with_a_lone_surrogate_is_refused() -> None:
    job = RunJob(run_id="r", session_id="s", branch_id="main", agent="a", task="\udc00")
    with pytest.raises(InvalidInputError):
        encode(job)


@given(st.binary(), st.binary())
def test_equal_hashes_mean_equal_content(one: bytes, other: bytes) -> None:
    hashes = [chain_hash("", "main", "run_started", data) for data in (one, other)]
    assert (hashes[0] == hashes[1]) == (one == other)


def test_a_hash_covers_all_that_comes_before() -> None:
    hashes = {
        chain_hash(parent, branch, kind, data)
        for parent in ("", "0" * 24)
        for branch in ("main", "side")
        for kind in ("run_started", "run_finished")
        for data in (b"", b"|", b"x")
    }
    assert len(hashes) == 24
    assert {len(digest) for digest in hashes} == {24}


async def test_a_script_hashes_as_python_does(driver: Driver) -> None:
    run_id = (await driver.submit(task="ünï|cødé" * 500)).run_id
    await driver.abort(run_id, "because |" * 200)
    parent_hash = ""
    entries = await driver.partition.call("XRANGE", driver.keys.log("s"), "-", "+")
    assert len(entries) == 3
    for _, pairs in entries:
        fields = dict(zip(pairs[::2], pairs[1::2], strict=True))
        branch, kind = fields[b"b"].decode(), fields[b"k"].decode()
        parent_hash = chain_hash(parent_hash, branch, kind, fields[b"d"])
        assert fields[b"h"].decode() == parent_hash
