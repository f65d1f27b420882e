"""Images and files in results: the record that brings one counts, wherever else it is repeated."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.blobs.test_life import archive_all
from tests.journal.builders import outcome_of, said
from tests.journal.driving import RETRY_S, Driver

from runlane.journal.archive import Archive
from runlane.journal.blobs import read_blob
from runlane.journal.errors import BlobMissingError, UnknownBlobError
from runlane.journal.lease import Lease
from runlane.journal.transitions import drop_orphans, put_blob
from runlane.journal.upkeep import delete
from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.content import FileBlock, ImageBlock
from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import AnyBody, MessageAppended, ToolCompleted
from runlane.journal.wire.tree import Checkpoint, MessagesAppended

PNG = b"\x89PNG" * 100_000


async def put(driver: Driver, lease: Lease, content: bytes = PNG) -> BlobRef:
    return await put_blob(driver.partition, lease, content, "image/png", retry_s=RETRY_S)


def drawn(asked: MessageAppended, *refs: BlobRef, **also: Any) -> ToolCompleted:
    """Return the result of a call whose blocks name blobs, images and files in turn."""
    kinds = (ImageBlock, FileBlock)
    blocks = tuple(
        kinds[place % 2](media_type="image/png", blob=ref) for place, ref in enumerate(refs)
    )
    elsewhere = ImageBlock(media_type="image/png", url="https://example.org/a.png")
    result = outcome_of(asked, 0)
    message = replace(result.message, blocks=(*blocks, elsewhere))
    return replace(result, message=message, **also)


async def refs_of(driver: Driver, ref: BlobRef) -> bytes | None:
    found: bytes | None = await driver.partition.call(
        "HGET", driver.keys.blob("s", ref.digest), "refs"
    )
    return found


async def told(driver: Driver, **finish: Any) -> tuple[BlobRef, ToolCompleted]:
    """Carry out a run with one call that gives an image."""
    lease = await driver.held()
    await driver.begin(lease)
    ref = await put(driver, lease)
    asked = said(lease, calls=["draw"])
    result = drawn(asked, ref)
    await driver.append(lease, [asked, result])
    await driver.finish(lease, **finish)
    return ref, result


async def test_a_record_counts_once_however_often_it_names_a_blob(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    image, whole = await put(driver, lease), await put(driver, lease, b"all of it")
    asked = said(lease, calls=["draw"])
    await driver.append(lease, [asked, drawn(asked, image, image, whole, full=whole)])
    assert (await refs_of(driver, image), await refs_of(driver, whole)) == (b"1", b"1")
    assert await drop_orphans(driver.partition, age_s=0) == 0
    await driver.finish(lease)
    await driver.check()


async def test_a_block_whose_content_is_not_there_stores_nothing(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    image = await put(driver, lease)
    gone = replace(image, digest="0" * 64)
    asked = said(lease, calls=["draw"])
    before = await driver.records()
    foreign = ToolMessage("c", "draw", "drawn", blocks=drawn(asked, gone).message.blocks)
    refused: list[list[AnyBody]] = [
        [asked, drawn(asked, image, gone)],
        [MessagesAppended(run_id=lease.run_id, messages=(foreign,))],
    ]
    for bodies in refused:
        with pytest.raises(BlobMissingError, match=gone.digest):
            await driver.append(lease, bodies)
    assert await driver.records() == before
    assert await refs_of(driver, image) == b"0"


async def test_a_checkpoint_repeats_blocks_and_counts_for_nothing(
    driver: Driver, archive: Archive
) -> None:
    driver.partition.archive = archive
    ref, result = await told(driver)
    lease = await driver.held()
    await driver.begin(lease)
    messages = tuple((await driver.project()).messages)
    assert result.message in messages
    await driver.finish(lease, checkpoint=Checkpoint(messages=messages))
    assert await refs_of(driver, ref) == b"1"
    await archive_all(driver)
    assert await drop_orphans(driver.partition, age_s=0) == 1
    assert (await driver.project()).messages == list(messages)
    assert await read_blob(driver.partition, "s", ref.digest) == PNG
    await driver.check()


async def test_a_block_goes_to_the_archive_before_its_record_and_away_with_its_session(
    driver: Driver, archive: Archive
) -> None:
    driver.partition.archive = archive
    ref, _ = await told(driver)
    await archive_all(driver)
    assert await refs_of(driver, ref) == b"0"
    assert await archive.get_blob("s", ref.digest) == PNG
    assert await drop_orphans(driver.partition, age_s=0) == 1
    assert await read_blob(driver.partition, "s", ref.digest) == PNG
    again, _ = await told(driver)
    assert again == ref
    assert await delete(driver.partition, "s", keep_s=60)
    with pytest.raises(UnknownBlobError):
        await read_blob(driver.partition, "s", ref.digest)
    assert await refs_of(driver, ref) is None
