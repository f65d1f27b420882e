"""Short words for what the tests do to a deployment, and for looking at what it did."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

from redis import Redis as SyncRedis
from redis.asyncio import Redis
from tests.checkers.invariants import check_keyspace
from tests.checkers.keyspace import READ, text
from tests.journal.builders import job_of, result_of, said, started
from tests.journal.recording import RecordingPartition, Sent

from runlane.journal import transitions, tree
from runlane.journal.keys import Keys
from runlane.journal.lease import Lease
from runlane.journal.link import client_for
from runlane.journal.path import read_path
from runlane.journal.projection import Projection
from runlane.journal.reader import read_records
from runlane.journal.transitions import Checkout, Claim, Finished, Renewal, Submitted, renew
from runlane.journal.transitions.register import WorkerInfo
from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.control import ControlReceipt
from runlane.journal.wire.events import Event
from runlane.journal.wire.jobs import AnyJob
from runlane.journal.wire.records import AnyBody, Record, RunFinished
from runlane.journal.wire.results import StopReason
from runlane.journal.wire.tree import BranchIntent, Checkpoint, Jump

PAYLOAD_BYTES_MAX: Final = 100_000
LEASE_MS: Final = 60_000
RETRY_S: Final = 10.0


@dataclass
class Driver:
    """Drives one deployment.

    Attributes:
        heads: Lane → record id of the last record that was written through here.
    """

    partition: RecordingPartition
    redis: Redis
    prefix: str
    heads: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    @property
    def keys(self) -> Keys:
        return self.partition.keys

    @property
    def last(self) -> Sent:
        return self.partition.sent[-1]

    async def register(self, worker: str = "w1", *, lease_ms: int = LEASE_MS) -> None:
        info = WorkerInfo(host="h", pid=1, agents={"a": "1", "b": "2"}, max_runs=10)
        await transitions.register(self.partition, worker_id=worker, lease_ms=lease_ms, info=info)

    async def branch(
        self, branch: str, *, session: str = "s", base: str = "", source: str = "main"
    ) -> str:
        """Begin a branch, empty or at a record of `source`; the session must exist."""
        if base:
            await tree.fork(self.partition, session, source, record_id=base, name=branch)
            head = await tree.read_head(self.partition, session, branch)
        else:
            jump = Jump(
                branch_id=branch,
                base_id="",
                base_branch_id="",
                source_branch_id=source,
                intent=BranchIntent.FORK,
            )
            head = await transitions.create_branch(self.partition, session, jump, last_run=None)
        self.heads[session, branch] = head
        return head

    async def promote(self, branch: str, *, session: str = "s") -> str:
        """Let main go on from the head of a branch."""
        head = await tree.follow(self.partition, session, branch)
        self.heads[session, "main"] = head
        return head

    async def project(self, session: str = "s", branch: str = "main") -> Projection:
        """Return a branch as of its head."""
        head = await tree.read_head(self.partition, session, branch)
        return (await read_path(self.partition, session, head)).project()

    async def put_blob(self, data: bytes, *, session: str = "s") -> BlobRef:
        """Store a blob that no record names yet."""
        digest = hashlib.sha256(data).hexdigest()
        ref = BlobRef(digest=digest, size=len(data), media_type="text/plain")
        content = ("pieces", 1, "data", data, "size", ref.size, "media_type", ref.media_type)
        key = self.keys.blob(session, digest)
        await self.partition.call("HSET", key, *content, "refs", 0, "at_ms", 1)
        await self.partition.call("SADD", self.keys.blobs(session), digest)
        await self.partition.call("ZADD", self.keys.orphans(), 1, f"{session}/{digest}")
        return ref

    async def submit(
        self, intent: str = "run", *, idempotency_key: str | None = None, **job: Any
    ) -> Submitted:
        return await self.submit_job(job_of(intent, **job), idempotency_key=idempotency_key)

    async def submit_job(self, job: AnyJob, *, idempotency_key: str | None = None) -> Submitted:
        return await transitions.submit(
            self.partition,
            job,
            payload_bytes_max=PAYLOAD_BYTES_MAX,
            idempotency_key=idempotency_key,
        )

    async def claim(
        self,
        worker: str = "w1",
        *,
        slots: int = 100,
        queues: Sequence[str] = ("a",),
        lease_ms: int = LEASE_MS,
        crashes_max: int = 3,
        crashes_total_max: int = 10,
    ) -> Claim:
        return await transitions.claim(
            self.partition,
            worker_id=worker,
            queues=queues,
            slots=slots,
            lease_ms=lease_ms,
            crashes_max=crashes_max,
            crashes_total_max=crashes_total_max,
        )

    async def lease(self, worker: str = "w1", **limits: Any) -> Lease:
        """Claim the one run that is due."""
        claim = await self.claim(worker, **limits)
        (run,) = claim.runs
        return run.lease

    async def held(self, worker: str = "w1", **job: Any) -> Lease:
        """Submit a run and claim it."""
        await self.submit(**job)
        return await self.lease(worker)

    async def checkout(self, lease: Lease) -> Checkout:
        checkout = await transitions.checkout(self.partition, lease, page=100)
        self.heads[lease.session_id, lease.branch_id] = checkout.head
        return checkout

    async def begin(self, lease: Lease) -> str:
        """Check out and journal the start."""
        await self.checkout(lease)
        return await self.append(lease, [started(lease)], progress=False)

    async def append(
        self,
        lease: Lease,
        entries: Sequence[AnyBody | Event],
        *,
        progress: bool = True,
        head: str | None = None,
    ) -> str:
        lane = lease.session_id, lease.branch_id
        appended = await transitions.append(
            self.partition,
            lease,
            entries,
            head=self.heads.get(lane, "") if head is None else head,
            progress=progress,
            retry_s=RETRY_S,
        )
        self.heads[lane] = appended.head
        return appended.head

    async def finish(
        self,
        lease: Lease,
        stop_reason: StopReason = StopReason.TEXT_RESPONSE,
        *,
        entries: Sequence[AnyBody | Event] = (),
        head: str | None = None,
        output: str | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Finished:
        lane = lease.session_id, lease.branch_id
        finished = await transitions.finish(
            self.partition,
            lease,
            result_of(stop_reason, output),
            entries=entries,
            head=self.heads.get(lane, "") if head is None else head,
            retry_s=RETRY_S,
            checkpoint=checkpoint,
        )
        self.heads[lane] = finished.head or self.heads.get(lane, "")
        return finished

    async def completed_with_checkpoint(self, **job: Any) -> Lease:
        """Submit a run, carry it out and finish it with a checkpoint."""
        lease = await self.held(**job)
        await self.begin(lease)
        answer, result = said(lease), result_of()
        end = RunFinished(run_id=lease.run_id, branch_id=lease.branch_id, result=result)
        projection = await self.project(lease.session_id, lease.branch_id)
        checkpoint = projection.after([answer, end]).checkpoint()
        await self.finish(lease, entries=[answer], checkpoint=checkpoint)
        return lease

    async def hand_back(self, lease: Lease) -> bool:
        return await transitions.hand_back(self.partition, lease, retry_s=RETRY_S)

    async def publish(self, lease: Lease, *events: Event, text: str = "") -> None:
        await transitions.publish(self.partition, lease, events, text=text, turn=1)

    async def abort(self, run_id: str, reason: str = "enough") -> ControlReceipt:
        return await transitions.abort(self.partition, run_id, branch_id="main", reason=reason)

    async def steer(
        self, content: str = "more", *, session: str = "s", branch: str = "main"
    ) -> ControlReceipt:
        return await transitions.steer(self.partition, session, branch, content)

    async def settle(
        self,
        run_id: str,
        stop_reason: StopReason = StopReason.WORKER_LOST,
        *,
        dead_reason: str = "",
        fence: str = "",
    ) -> bool:
        return await transitions.settle(
            self.partition,
            run_id,
            result_of(stop_reason),
            dead_reason=dead_reason,
            fence=fence,
        )

    async def renew(self, *leases: Lease, worker: str = "w1", lease_ms: int = LEASE_MS) -> Renewal:
        with SyncRedis.from_url(self.partition.url) as client:
            return renew(client, self.keys, worker_id=worker, lease_ms=lease_ms, leases=leases)

    async def completed(self, **job: Any) -> Lease:
        """Submit a run, carry it out and finish it."""
        lease = await self.held(**job)
        await self.begin(lease)
        await self.finish(lease)
        return lease

    async def expire(self, lease: Lease) -> None:
        """End a lease now, as if its worker had gone silent long ago."""
        await self.redis.zadd(self.keys.queue(lease.queue), {lease.run_id: 1})

    async def fields(self, key: str) -> dict[str, str]:
        """Return a hash."""
        words: list[bytes] = await self.partition.call("HGETALL", key)
        names, values = map(text, words[::2]), map(text, words[1::2])
        return dict(zip(names, values, strict=True))

    async def run(self, run_id: str) -> dict[str, str]:
        return await self.fields(self.keys.run(run_id))

    async def lane(self, session: str = "s", branch: str = "main") -> dict[str, str]:
        return await self.fields(self.keys.lane(session, branch))

    async def state(self, run_id: str) -> str:
        return (await self.run(run_id))["state"]

    async def queued(self, queue: str = "a") -> list[str]:
        """Return the runs of a queue, first due first."""
        members = await self.partition.call("ZRANGE", self.keys.queue(queue), 0, -1)
        return [member.decode() for member in members]

    async def waiting(
        self, session: str = "s", branch: str = "main"
    ) -> tuple[list[str], list[str]]:
        """Return the follow-ups and the inbox of a lane."""
        names = self.keys.follow_ups(session, branch), self.keys.inbox(session, branch)
        follow_ups, inbox = [await self.partition.call("LRANGE", name, 0, -1) for name in names]
        return [run.decode() for run in follow_ups], [run.decode() for run in inbox]

    async def due_ms(self, lease: Lease) -> int:
        """Return when the lease ends, in server ms from now."""
        score = await self.partition.call("ZSCORE", self.keys.queue(lease.queue), lease.run_id)
        seconds, micros = await self.partition.call("TIME")
        return int(float(score)) - int(seconds) * 1000 - int(micros) // 1000

    async def check(self, *, quiescent: bool = False) -> None:
        await check_keyspace(self.redis, self.prefix, quiescent=quiescent)

    async def records(self, session: str = "s") -> list[Record]:
        return [record async for record in read_records(self.partition, session)]

    async def dump(self) -> dict[str, Any]:
        """Return the value of every key of the deployment, and what stock arq sees of its runs."""
        redis = cast("Any", self.redis)
        ours: list[bytes] = [name async for name in redis.scan_iter(f"{self.prefix}:*", count=1000)]
        runs = {name.rpartition(b":")[2] for name in ours if b":run:" in name}
        mirror: list[bytes] = [name async for name in redis.scan_iter("arq:*", count=1000)]
        names = sorted([*ours, *(name for name in mirror if name.rpartition(b":")[2] in runs)])
        kinds: list[bytes] = [await redis.type(name) for name in names]
        return {
            text(name): await READ[text(kind)](redis, text(name))
            for name, kind in zip(names, kinds, strict=True)
        }

    @asynccontextmanager
    async def hearing(self, *channels: str) -> AsyncGenerator[list[bytes], None]:
        """Collect what is published within the block; the list is filled at its end."""
        heard: list[bytes] = []
        end = b"end of the block"
        pubsub: Any = cast("Any", self.redis).pubsub()
        async with pubsub, asyncio.timeout(10):
            await pubsub.subscribe(*channels)
            for _ in channels:
                await pubsub.get_message(timeout=None)  # the server confirms each
            yield heard
            for channel in channels:
                await self.partition.call("PUBLISH", channel, end)
            left = len(channels)
            while left:
                data: bytes = (await pubsub.get_message(timeout=None))["data"]
                if data == end:
                    left -= 1
                else:
                    heard.append(data)

    @asynccontextmanager
    async def unchanged(self, session: str = "s") -> AsyncGenerator[None, None]:
        """Prove that nothing is written or published within the block."""
        before = await self.dump()
        channels = (self.keys.events(session), self.keys.control("w1"))
        async with self.hearing(*channels) as heard:
            yield
        assert await self.dump() == before
        assert heard == []


@asynccontextmanager
async def open_driver(
    url: str, *, prefix: str = "p", retry_s: float = 60
) -> AsyncGenerator[Driver, None]:
    """Open a deployment with a worker, w1, that serves the agents a and b."""
    partition = RecordingPartition(url, prefix=prefix, retry_s=retry_s)
    try:
        await partition.open()
        async with client_for(url) as redis:
            driver = Driver(partition, redis, prefix)
            await driver.register()
            yield driver
    finally:
        await partition.close()
