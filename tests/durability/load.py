"""Lanes that are written to without a pause, and a list of every answer that said: it is kept.

`python -m tests.durability.load URL PREFIX DURABILITY FILE` writes until it is ended; FILE gets a
line for each answer.
"""

import asyncio
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast
from uuid import uuid4

import msgspec
from msgspec import Struct
from tests.journal.builders import intent_of, job_of, outcome_of, result_of, said, started

from runlane.journal import transitions
from runlane.journal.errors import RunlaneError, UnknownRunError
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.settings import Durability
from runlane.journal.transitions.register import WorkerInfo
from runlane.journal.wire.records import AnyBody

LANES: Final = 4
POLL_S: Final = 0.02
CLAIMS_MAX: Final = 50
"""After so many empty claims a run is taken for lost."""
PAUSE_S: Final = 0.02
"""Between two runs of a lane: the servers of these tests share few cores with it."""
PAGE: Final = 500
RETRY_S: Final = 60.0
LEASE_MS: Final = 60_000


class Acknowledged(Struct, frozen=True):
    """A record that the server said it has."""

    session: str
    record_id: str


@dataclass
class Load:
    """Writes to some lanes of a deployment.

    Attributes:
        acknowledged: The last record of each step that was answered.
        refused: What ended a run early: how a loss is noticed by whoever writes.
        file: Where the answers are written to as well.
    """

    partition: Partition
    acknowledged: list[Acknowledged] = field(default_factory=list[Acknowledged])
    refused: list[str] = field(default_factory=list[str])
    file: Path | None = None

    async def write(self) -> None:
        """Write until cancelled."""
        name = uuid4().hex[:8]
        lanes = [f"{name}-{number}" for number in range(LANES)]
        info = WorkerInfo(host="h", pid=1, agents=dict.fromkeys(lanes, "1"), max_runs=LANES)
        await transitions.register(self.partition, worker_id=name, lease_ms=LEASE_MS, info=info)
        await asyncio.gather(*(self._fill(name, lane) for lane in lanes))

    async def _fill(self, worker: str, lane: str) -> None:
        number = 0
        while True:
            try:
                await self._run(worker, agent=lane, session=f"{lane}-{number}")
                await asyncio.sleep(PAUSE_S)
            except RunlaneError as error:
                self.refused.append(str(error))
                number += 1

    async def _run(self, worker: str, *, agent: str, session: str) -> None:
        job = job_of(session=session, agent=agent)
        submitted = await transitions.submit(self.partition, job, payload_bytes_max=100_000)
        self._acknowledge(session, submitted.queued_id)
        lease = await self._claim(worker, agent, submitted.run_id)
        checkout = await transitions.checkout(self.partition, lease, page=10)
        head = await self._append(lease, checkout.head, started(lease))
        message = said(lease, calls=["pay"])
        head = await self._append(lease, head, message, intent_of(message, 0))
        head = await self._append(lease, head, outcome_of(message, 0))
        finished = await transitions.finish(
            self.partition, lease, result_of(), entries=[], head=head, retry_s=RETRY_S
        )
        self._acknowledge(session, finished.head)

    async def _claim(self, worker: str, agent: str, run_id: str) -> Lease:
        for _ in range(CLAIMS_MAX):
            claim = await transitions.claim(
                self.partition,
                worker_id=worker,
                queues=[agent],
                slots=1,
                lease_ms=LEASE_MS,
                crashes_max=100,
                crashes_total_max=1000,
            )
            for run in claim.runs:
                if run.lease.run_id == run_id:
                    return run.lease
            await asyncio.sleep(POLL_S)
        raise UnknownRunError(run_id)

    async def _append(self, lease: Lease, head: str, *bodies: AnyBody) -> str:
        appended = await transitions.append(
            self.partition, lease, bodies, head=head, progress=True, retry_s=RETRY_S
        )
        self._acknowledge(lease.session_id, appended.head)
        return appended.head

    def _acknowledge(self, session: str, record_id: str) -> None:
        entry = Acknowledged(session, record_id)
        self.acknowledged.append(entry)
        if self.file is not None:
            with self.file.open("ab") as file:
                file.write(msgspec.json.encode(entry) + b"\n")


def read(file: Path) -> list[Acknowledged]:
    """Return the answers that another process has got so far."""
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    return [msgspec.json.decode(line, type=Acknowledged) for line in lines if line.endswith(b"\n")]


async def lost(partition: Partition, answers: Iterable[Acknowledged]) -> list[Acknowledged]:
    """Return the answers whose record the server does not have, or has with other content."""
    waiting, found = list(answers), list[Acknowledged]()
    while waiting:
        page, waiting = waiting[:PAGE], waiting[PAGE:]
        kept = await asyncio.gather(*(_is_kept(partition, each) for each in page))
        found += [each for each, is_kept in zip(page, kept, strict=True) if not is_kept]
    return found


async def _is_kept(partition: Partition, answer: Acknowledged) -> bool:
    stream_id, _, digest = answer.record_id.partition(".")
    log = partition.keys.log(answer.session)
    entries: list[Any] = await partition.call("XRANGE", log, stream_id, stream_id)
    if not entries:
        return False
    words: list[bytes] = entries[0][1]
    return dict(zip(words[::2], words[1::2], strict=True))[b"h"] == digest.encode()


async def _main(url: str, prefix: str, durability: Durability, file: Path) -> None:
    partition = Partition(url, prefix=prefix, retry_s=RETRY_S, durability=durability)
    await partition.open()
    await Load(partition, file=file).write()


if __name__ == "__main__":
    os.environ.clear()  # nothing of the developer's settings
    asyncio.run(_main(sys.argv[1], sys.argv[2], cast("Durability", sys.argv[3]), Path(sys.argv[4])))
