"""What tests of the upkeep do again and again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tests.journal.builders import said
from tests.journal.driving import Driver

from runlane.journal.archive.paths import session_folder
from runlane.journal.lease import Lease
from runlane.journal.ownership import own_archive
from runlane.journal.transitions import ArchiveClaim, archive_claim
from runlane.journal.upkeep import archive_session
from runlane.journal.upkeep.archiver import drop_batch, read_batch, store_batch

HOUR_MS = 3_600_000
KEEP_S = 1000


@dataclass
class Keeper:
    """Does the upkeep of a deployment by hand.

    Attributes:
        store: The folder of the archive.
    """

    driver: Driver
    store: Path

    async def trace(self, session: str = "s", branch: str = "main", *, checkpoint: bool) -> Lease:
        """Let a run complete on a branch; it leaves four records, or five with a checkpoint."""
        finish = self.driver.completed_with_checkpoint
        if checkpoint:
            return await finish(session=session, branch=branch)
        lease = await self.driver.held(session=session, branch=branch)
        await self.driver.begin(lease)
        await self.driver.finish(lease, entries=[said(lease)])
        return lease

    async def claim(self, worker: str = "w1", **options: Any) -> list[ArchiveClaim]:
        """Claim what is due."""
        options = {"count": 10, **options}
        return await archive_claim(self.driver.partition, worker_id=worker, **options)

    async def claim_one(self, session: str = "s", **options: Any) -> ArchiveClaim:
        """Claim a session, which must have something to archive, whether it is due or not."""
        await self.make_due(session)
        (claim,) = await self.claim(count=1, **options)
        assert claim.session_id == session
        return claim

    async def archive(self, session: str = "s", **options: Any) -> int:
        """Archive what a session may give; return how many records."""
        return await archive_session(
            self.driver.partition, await self.claim_one(session), **options
        )

    async def archive_all(self, session: str = "s") -> None:
        """Archive a session whose lanes are idle, as if that had been so for long."""
        self.driver.partition.cold_ms = 0
        await self.archive(session)
        self.driver.partition.cold_ms = HOUR_MS

    async def step(self, claim: ArchiveClaim, *, count: int) -> ArchiveClaim:
        """Archive the next records of a claimed session, and keep it."""
        partition = self.driver.partition
        await own_archive(partition)
        batch = await read_batch(partition, claim, count=count)
        return await drop_batch(partition, await store_batch(partition, claim, batch), batch)

    async def make_due(self, session: str = "s") -> None:
        await self.driver.redis.zadd(self.driver.keys.archive(), {session: 1})

    async def due(self) -> dict[str, float]:
        """Return the sessions that wait for the archive, and when they are due."""
        found = await self.driver.redis.zrange(self.driver.keys.archive(), 0, -1, withscores=True)
        return {session.decode(): score for session, score in found}

    async def now_ms(self) -> int:
        seconds, micros = await self.driver.partition.call("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    async def stream(self, session: str = "s") -> list[int]:
        """Return the revisions that the stream has."""
        entries = await cast("Any", self.driver.redis).xrange(self.driver.keys.log(session))
        return [int(stream_id.partition(b"-")[0]) for stream_id, _ in entries]

    async def session(self, session: str = "s") -> dict[str, str]:
        return await self.driver.fields(self.driver.keys.session(session))

    def segments(self, session: str = "s") -> list[tuple[int, int]]:
        """Return first and last revision of each segment in the store."""
        folder = self.store / session_folder(session)
        names = [path.name.split("-") for path in folder.glob("*.jsonl")]
        return sorted((int(first), int(last)) for first, last, _ in names)

    def files(self) -> list[Path]:
        """Return what lies in the store, but for the mark that says whose it is."""
        files = [path for path in self.store.rglob("*") if path.is_file()]
        return [path for path in files if path.name != "deployment"]
