"""A blob goes where its records go: to the archive with them, and away with its session."""

from typing import Any, cast

import pytest
from msgspec.structs import replace
from tests.journal.builders import outcome_of, said
from tests.journal.driving import RETRY_S, Driver

from runlane.journal.archive import Archive
from runlane.journal.archive.paths import blob_path
from runlane.journal.blobs import read_blob
from runlane.journal.errors import ArchiveDamagedError, ArchiveMissingError, UnknownBlobError
from runlane.journal.transitions import archive_claim, drop_orphans, put_blob
from runlane.journal.upkeep import archive_session, delete
from runlane.journal.wire.blobs import BlobRef

TEXT = b"what a tool said " * 100_000


async def told(driver: Driver, content: bytes = TEXT, **place: Any) -> BlobRef:
    """Carry out a run with one call whose result is kept beside the journal."""
    lease = await driver.held(**place)
    await driver.begin(lease)
    blob = await put_blob(driver.partition, lease, content, "text/plain", retry_s=RETRY_S)
    asked = said(lease, calls=["look"])
    await driver.append(lease, [asked, replace(outcome_of(asked, 0), full=blob)])
    await driver.finish(lease)
    return blob


async def archive_all(driver: Driver) -> None:
    """Archive what lies in the stream, as if nothing had happened for long."""
    driver.partition.cold_ms = 0
    await driver.redis.zadd(driver.keys.archive(), {"s": 1})
    (claim,) = await archive_claim(driver.partition, worker_id="w1", count=1)
    await archive_session(driver.partition, claim)


async def is_on_the_server(driver: Driver, blob: BlobRef) -> bool:
    return bool(await driver.partition.call("EXISTS", driver.keys.blob("s", blob.digest)))


async def blob_keys(driver: Driver) -> list[str]:
    """Return every key that has to do with blobs."""
    names: list[bytes] = await cast("Any", driver.redis).keys(f"{driver.keys.root}:*")
    kinds = ("blob:", "blobs:", "orphans", "upload:")
    found = [name.decode().removeprefix(f"{driver.keys.root}:") for name in names]
    return [name for name in found if name.startswith(kinds)]


async def test_it_goes_to_the_archive_with_the_last_record_that_names_it(
    driver: Driver, archive: Archive
) -> None:
    driver.partition.archive = archive
    blob = await told(driver)
    await archive_all(driver)
    assert await archive.get_blob("s", blob.digest) == TEXT
    assert await is_on_the_server(driver, blob)
    assert await drop_orphans(driver.partition) == 0, "it is an orphan since a moment only"
    assert await drop_orphans(driver.partition, age_s=0) == 1
    assert await blob_keys(driver) == []
    assert await read_blob(driver.partition, "s", blob.digest) == TEXT
    await driver.check()


async def test_it_stays_while_the_stream_has_a_record_that_names_it(
    driver: Driver, archive: Archive
) -> None:
    driver.partition.archive = archive
    blob = await told(driver)
    await archive_all(driver)
    assert await told(driver) == blob
    assert await drop_orphans(driver.partition, age_s=0) == 0
    await archive_all(driver)
    assert await drop_orphans(driver.partition, age_s=0) == 1
    assert await told(driver) == blob
    assert await read_blob(driver.partition, "s", blob.digest) == TEXT
    await driver.check()


async def test_what_the_archive_does_not_have_is_unknown_or_an_error(
    driver: Driver, archive: Archive
) -> None:
    driver.partition.archive = archive
    blob = await told(driver)
    await archive_all(driver)
    with pytest.raises(UnknownBlobError):
        await read_blob(driver.partition, "s", "0" * 64)
    await drop_orphans(driver.partition, age_s=0)
    await archive.put_blob("s", blob.digest, b"?")
    with pytest.raises(ArchiveDamagedError, match=blob_path("s", blob.digest)):
        await read_blob(driver.partition, "s", blob.digest)
    driver.partition.archive = None
    with pytest.raises(ArchiveMissingError, match="RUNLANE_ARCHIVE"):
        await read_blob(driver.partition, "s", blob.digest)


async def test_branches_share_it_and_each_record_counts(driver: Driver) -> None:
    blob = await told(driver)
    await driver.branch("side", base=driver.heads["s", "main"])
    refs = ("HGET", driver.keys.blob("s", blob.digest), "refs")
    assert await driver.partition.call(*refs) == b"1", "the branch has no record of its own yet"
    assert await told(driver, branch="side") == blob
    assert await driver.partition.call(*refs) == b"2"
    await driver.check()


async def test_a_deleted_session_leaves_none(driver: Driver, archive: Archive) -> None:
    driver.partition.archive = archive
    blobs = [await told(driver, content) for content in (TEXT, b"much")]
    await archive_all(driver)
    blobs.append(await told(driver, b"more"))
    lease = await driver.held()
    blobs.append(await put_blob(driver.partition, lease, b"orphan", "text/plain", retry_s=RETRY_S))
    kept = await told(driver, session="t")
    assert await delete(driver.partition, "s", keep_s=60)
    assert sorted(await blob_keys(driver)) == [f"blob:t/{kept.digest}", "blobs:t"]
    for blob in blobs:
        with pytest.raises(UnknownBlobError):
            await read_blob(driver.partition, "s", blob.digest)
        with pytest.raises(ArchiveMissingError):
            await archive.get_blob("s", blob.digest)
    assert await read_blob(driver.partition, "t", kept.digest) == TEXT
