"""A program that archives one session, and waits for a word between the segment and the trim."""

import asyncio
import sys
from pathlib import Path

from runlane.journal.archive import Archive, FileStore
from runlane.journal.errors import ArchiverFencedError
from runlane.journal.ownership import own_archive
from runlane.journal.partition import Partition
from runlane.journal.transitions import archive_claim
from runlane.journal.upkeep.archiver import drop_batch, read_batch, store_batch

LEASE_MS = 1000


async def archive(url: str, prefix: str, store: str) -> None:
    partition = Partition(url, prefix=prefix, retry_s=10, archive=Archive(FileStore(Path(store))))
    await own_archive(partition)
    (claim,) = await archive_claim(partition, worker_id="slow", count=1, lease_ms=LEASE_MS)
    batch = await read_batch(partition, claim, count=100)
    claim = await store_batch(partition, claim, batch)
    print("stored", flush=True)  # noqa: T201 (for the parent process)
    sys.stdin.readline()
    try:
        await drop_batch(partition, claim, batch)
        print("dropped", flush=True)  # noqa: T201
    except ArchiverFencedError as error:
        print(f"fenced: {error}", flush=True)  # noqa: T201
    await partition.close()


if __name__ == "__main__":
    asyncio.run(archive(*sys.argv[1:]))
