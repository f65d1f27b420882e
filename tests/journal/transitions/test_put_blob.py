"""put_blob and drop_orphans: content is there before a record names it, and goes if none does."""

import asyncio
import hashlib
import os
from typing import Any

import pytest
from msgspec.structs import replace
from tests.journal.builders import outcome_of, said
from tests.journal.driving import RETRY_S, Driver

from runlane.journal.blobs import read_blob
from runlane.journal.errors import BlobMissingError, PayloadTooLargeError, SessionFencedError
from runlane.journal.lease import Lease
from runlane.journal.transitions import drop_orphans, put_blob
from runlane.journal.wire import blobs
from runlane.journal.wire.blobs import BlobRef

TEXT = b"what a tool said " * 1000


async def put(driver: Driver, lease: Lease, content: bytes = TEXT) -> BlobRef:
    return await put_blob(driver.partition, lease, content, "text/plain", retry_s=RETRY_S)


async def named(driver: Driver, lease: Lease, blob: BlobRef, turn: int = 1) -> None:
    """Journal a call whose result the blob holds."""
    asked = said(lease, turn, calls=["look"])
    await driver.append(lease, [asked, replace(outcome_of(asked, 0), full=blob)])


async def orphans(driver: Driver) -> dict[str, float]:
    """Return the blobs that no record names, and since when."""
    found = await driver.redis.zrange(driver.keys.orphans(), 0, -1, withscores=True)
    return {name.decode(): since for name, since in found}


async def digests(driver: Driver, session: str = "s") -> set[str]:
    found: set[bytes] = await driver.partition.call("SMEMBERS", driver.keys.blobs(session))
    return {digest.decode() for digest in found}


async def age(driver: Driver, blob: BlobRef, seconds: float, session: str = "s") -> None:
    """Let a blob have been without a record for longer than it was."""
    member = f"{session}/{blob.digest}"
    await driver.partition.call("ZINCRBY", driver.keys.orphans(), -1000 * seconds, member)


@pytest.mark.parametrize("content", [b"", b"short", TEXT, os.urandom(100_000)], ids=len)
async def test_content_is_kept_under_its_digest(driver: Driver, content: bytes) -> None:
    lease = await driver.held()
    blob = await put(driver, lease, content)
    assert blob.digest == hashlib.sha256(content).hexdigest()
    assert (blob.size, blob.media_type) == (len(content), "text/plain")
    key = driver.keys.blob("s", blob.digest)
    fields = await driver.partition.call("HMGET", key, "size", "media_type", "refs", "at_ms")
    assert fields[:3] == [str(len(content)).encode(), b"text/plain", b"0"]
    assert await orphans(driver) == {f"s/{blob.digest}": float(fields[3])}
    assert await digests(driver) == {blob.digest}
    assert await driver.partition.call("TTL", key) == -1
    await driver.check()


async def test_only_what_gets_shorter_is_compressed(driver: Driver) -> None:
    lease = await driver.held()
    random = os.urandom(100_000)
    for content, stored in ((random, range(100_000, 100_001)), (TEXT, range(1, 1000))):
        blob = await put(driver, lease, content)
        data = await driver.partition.call("HGET", driver.keys.blob("s", blob.digest), "data")
        assert len(data) in stored


async def test_the_same_content_again_is_the_same_blob(driver: Driver) -> None:
    lease = await driver.held()
    blob = await put(driver, lease)
    first = driver.last
    assert (first.code, await put(driver, lease)) == ("OK", blob)
    assert driver.last.reply == [b"EXISTS", b"0"]
    await driver.begin(lease)
    await named(driver, lease, blob)
    assert await put(driver, lease) == blob
    assert driver.last.reply == [b"EXISTS", b"1"]
    assert await driver.partition.resend(first) == [b"EXISTS", b"1"]
    assert await digests(driver) == {blob.digest}
    await driver.check()


async def test_branches_share_and_sessions_do_not(driver: Driver) -> None:
    await driver.completed()
    await driver.branch("side")
    leases = [await driver.held(), await driver.held(branch="side"), await driver.held(session="t")]
    (blob,) = {await put(driver, lease) for lease in leases}
    assert [sent.code for sent in driver.partition.sent if sent.script.name == "put_blob"] == [
        "OK",
        "EXISTS",
        "OK",
    ]
    assert await digests(driver) == await digests(driver, "t") == {blob.digest}


@pytest.mark.parametrize("change", [{"fence": "1:0000"}, {"fence": ""}, {"run_id": "other"}])
async def test_nothing_is_kept_for_whoever_does_not_hold_the_lane(
    driver: Driver, change: dict[str, str]
) -> None:
    lease = await driver.held()
    async with driver.unchanged():
        with pytest.raises(SessionFencedError) as refused:
            await put(driver, replace(lease, **change))
    assert refused.value.fence_held == lease.fence
    await driver.finish(lease)
    async with driver.unchanged():
        with pytest.raises(SessionFencedError):
            await put(driver, lease)


async def test_content_over_the_limit_is_refused(driver: Driver) -> None:
    lease = await driver.held()
    driver.partition.blob_bytes_max = 10
    await put(driver, lease, b"x" * 10)
    with pytest.raises(PayloadTooLargeError, match="11 bytes, over the limit of 10"):
        await put(driver, lease, b"x" * 11)


async def test_each_record_that_names_a_blob_counts_once(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    blob = await put(driver, lease)
    for turn in (1, 2):
        await named(driver, lease, blob, turn)
        assert (await driver.partition.resend(driver.last))[0] == b"DUP"
    asked = said(lease, 3, calls=["look"])
    await driver.finish(lease, entries=[asked, replace(outcome_of(asked, 0), full=blob)])
    key = driver.keys.blob("s", blob.digest)
    assert await driver.partition.call("HGET", key, "refs") == b"3"
    assert await orphans(driver) == {}
    await driver.check()


async def test_no_record_names_what_is_not_there(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    there = await put(driver, lease)
    gone = BlobRef(digest="0" * 64, size=1, media_type="text/plain")
    asked = said(lease, calls=["look", "look"])
    results = [
        replace(outcome_of(asked, index), full=blob) for index, blob in enumerate((there, gone))
    ]
    async with driver.unchanged():
        with pytest.raises(BlobMissingError, match=gone.digest):
            await driver.append(lease, [asked, *results])
        with pytest.raises(BlobMissingError, match=gone.digest):
            await driver.finish(lease, entries=[asked, *results])


async def test_what_no_record_names_for_an_hour_is_dropped(driver: Driver) -> None:
    leases = [await driver.held(session=session) for session in ("s", "t")]
    old = [await put(driver, lease) for lease in leases]
    young = await put(driver, leases[0], b"young")
    for blob, session in zip(old, ("s", "t"), strict=True):
        await age(driver, blob, 3601, session)
    await age(driver, young, 3500)
    assert await drop_orphans(driver.partition, count=1) == 1
    assert await drop_orphans(driver.partition, count=10) == 1
    assert await drop_orphans(driver.partition) == 0
    assert list(await orphans(driver)) == [f"s/{young.digest}"]
    assert (await digests(driver), await digests(driver, "t")) == ({young.digest}, set())
    for session in ("s", "t"):
        assert not await driver.partition.call("EXISTS", driver.keys.blob(session, old[0].digest))
    await driver.check()


async def test_an_orphan_that_is_put_again_is_young_again(driver: Driver) -> None:
    lease = await driver.held()
    blob = await put(driver, lease)
    await age(driver, blob, 3601)
    await put(driver, lease)
    assert await drop_orphans(driver.partition) == 0
    await driver.begin(lease)
    await named(driver, lease, blob)
    await driver.check()


async def test_what_a_record_names_is_never_dropped(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    blob = await put(driver, lease)
    await age(driver, blob, 3601)
    await named(driver, lease, blob)
    assert await drop_orphans(driver.partition, age_s=0) == 0
    assert await driver.partition.call("EXISTS", driver.keys.blob("s", blob.digest))


@pytest.mark.parametrize("size", [999, 1000, 1001, 2000, 5500])
async def test_a_large_one_comes_in_pieces_and_is_there_once_it_is_whole(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(blobs, "PIECE_BYTES", 1000)
    lease = await driver.held()
    blob = await put(driver, lease, content := os.urandom(size))
    sent = [each for each in driver.partition.sent if each.script.name == "put_blob"]
    assert [each.code for each in sent] == ["MORE"] * ((size - 1) // 1000) + ["OK"]
    assert await read_blob(driver.partition, "s", blob.digest) == content
    assert await driver.redis.keys(driver.keys.upload("*", "*")) == []
    for each in sent:
        assert await driver.partition.resend(each) == [b"EXISTS", b"0"]
    await driver.check()


async def test_what_was_not_put_to_the_end_is_no_blob_and_goes_by_itself(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "PIECE_BYTES", 1000)
    lease = await driver.held()
    await driver.begin(lease)
    content = os.urandom(3000)
    blob = await put(driver, lease, content)
    first = next(each for each in driver.partition.sent if each.code == "MORE")
    await driver.partition.call("DEL", driver.keys.blob("s", blob.digest))
    assert await driver.partition.resend(first) == [b"MORE", 1]
    (upload,) = await driver.redis.keys(driver.keys.upload("*", "*"))
    assert 0 < await driver.redis.pttl(upload) <= 600_000
    asked = said(lease, calls=["look"])
    with pytest.raises(BlobMissingError):
        await driver.append(lease, [asked, replace(outcome_of(asked, 0), full=blob)])
    assert await put(driver, lease, content) == blob
    await named(driver, lease, blob)


async def test_an_upload_that_the_server_has_lost_in_part_begins_again(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "PIECE_BYTES", 1000)
    lease = await driver.held()
    carry_out = driver.partition.transition
    lost: list[bytes] = []

    async def losing(name: str, *args: Any, **options: Any) -> list[Any]:
        if not lost and driver.last.reply == [b"MORE", 2]:
            lost.extend(await driver.redis.keys(driver.keys.upload("*", "*")))
            await driver.redis.delete(*lost)
        return await carry_out(name, *args, **options)

    monkeypatch.setattr(driver.partition, "transition", losing)
    blob = await put(driver, lease, content := os.urandom(2500))
    codes = [each.code for each in driver.partition.sent if each.script.name == "put_blob"]
    assert codes == ["MORE", "MORE", "LOST", "MORE", "MORE", "OK"]
    assert await read_blob(driver.partition, "s", blob.digest) == content


async def test_two_who_put_the_same_at_once_do_not_disturb_each_other(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "PIECE_BYTES", 1000)
    await driver.completed()
    await driver.branch("side")
    leases = [await driver.held(), await driver.held(branch="side")]
    content = os.urandom(10_000)
    one, other = await asyncio.gather(*(put(driver, lease, content) for lease in leases))
    assert one == other
    assert await read_blob(driver.partition, "s", one.digest) == content
    assert await driver.redis.keys(driver.keys.upload("*", "*")) == []
    assert len(await orphans(driver)) == 1
