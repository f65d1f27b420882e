"""A blob is read from the server or else from the archive, and is what was put, or an error."""

import asyncio
import os
from collections.abc import AsyncIterator

import pytest
from tests.journal.driving import RETRY_S, Driver

from runlane.journal.blobs import read_blob
from runlane.journal.errors import UndecodableError, UnknownBlobError
from runlane.journal.transitions import put_blob
from runlane.journal.wire.blobs import BlobRef, pack_blob, unpack_blob
from runlane.producer import Client, InvalidInputError, Session, Settings, SyncClient

TEXT = b"what a tool said " * 100_000
RANDOM = os.urandom(1_000_000)


async def put(driver: Driver, content: bytes) -> BlobRef:
    lease = await driver.held()
    return await put_blob(driver.partition, lease, content, "text/plain", retry_s=RETRY_S)


@pytest.fixture
async def session(driver: Driver) -> AsyncIterator[Session]:
    settings = Settings(redis_url=driver.partition.url, prefix=driver.prefix)
    async with await Client.connect(settings=settings) as client:
        yield client.session("s", agent="a")


@pytest.mark.parametrize("content", [b"", b"\x28\xb5\x2f\xfd", TEXT, RANDOM], ids=len)
async def test_a_blob_is_given_back_as_it_was_put(
    driver: Driver, session: Session, content: bytes
) -> None:
    blob = await put(driver, content)
    assert await session.blob(blob) == content
    assert await session.blob(blob.digest) == content


async def test_synchronous_code_reads_it_too(driver: Driver) -> None:
    blob = await put(driver, TEXT)
    settings = Settings(redis_url=driver.partition.url, prefix=driver.prefix)

    def read() -> bytes:
        with SyncClient.connect(settings=settings) as client:
            return client.session("s", agent="a").blob(blob)

    assert await asyncio.to_thread(read) == TEXT


async def test_what_is_compressed_already_is_not_decompressed(
    driver: Driver, session: Session
) -> None:
    content = b"".join(pack_blob(TEXT, "text/plain").pieces)
    assert await session.blob(await put(driver, content)) == content


async def test_what_is_not_there_is_unknown(driver: Driver, session: Session) -> None:
    blob = await put(driver, TEXT)
    with pytest.raises(UnknownBlobError, match="0" * 64):
        await session.blob("0" * 64)
    with pytest.raises(UnknownBlobError, match=blob.digest):
        await read_blob(driver.partition, "t", blob.digest)


@pytest.mark.parametrize("digest", ["", "0" * 63, "0" * 65, "G" * 64, "A" * 64, None, 7])
async def test_what_is_no_digest_is_refused(session: Session, digest: str) -> None:
    with pytest.raises(InvalidInputError):
        await session.blob(digest)


async def test_a_damaged_blob_is_never_given(driver: Driver) -> None:
    for content in (TEXT, RANDOM):
        packed = pack_blob(content, "text/plain")
        digest, stored = packed.ref.digest, b"".join(packed.pieces)
        flipped = stored[:-1] + bytes([stored[-1] ^ 1])
        for damaged in (stored[:-1], flipped, stored[:20], b"", TEXT[::-1]):
            fields = ("data", damaged, "size", packed.ref.size)
            await driver.partition.call("HSET", driver.keys.blob("s", digest), *fields)
            with pytest.raises(UndecodableError, match=digest):
                await read_blob(driver.partition, "s", digest)


def test_compressed_data_cannot_claim_endless_memory() -> None:
    bomb = pack_blob(b"\0" * 100_000_000, "text/plain")
    with pytest.raises(UndecodableError, match="claims 100000000 bytes, not 5"):
        unpack_blob(bomb.ref.digest, bomb.pieces, size=5)
