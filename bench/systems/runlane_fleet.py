"""Runlane, with a model inside the worker's process that answers at once."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from bench.marks import Marks
from bench.systems.protocol import Work
from runlane.journal.partition import Partition
from runlane.journal.settings import Settings, load_settings
from runlane.journal.transitions import register
from runlane.journal.transitions.register import WorkerInfo
from runlane.journal.wire.messages import AssistantMessage, ModelUsage, UserMessage
from runlane.journal.wire.records import RunStarted
from runlane.observability.logs import configure_logs
from runlane.producer import Client
from runlane.worker import (
    Agent,
    App,
    CancellationToken,
    ModelAdapter,
    ModelContext,
    ModelResponseCompleted,
    RunlaneWorker,
)

AGENT: Final = "bench"
RECORDS_PER_RUN: Final = 4
"""run_queued, run_started, message_appended, run_finished."""


class Runlane(Struct, frozen=True, kw_only=True, tag="runlane"):
    """Runlane with its defaults; `lease_ms` is that of `Settings` unless it is given."""

    lease_ms: int | None = None

    @property
    def lease_s(self) -> float:
        """The lease in seconds."""
        return _settings(lease_ms=self.lease_ms).lease_ms / 1000

    def serve(self, work: Work) -> None:
        """Execute runs; informational logs are off."""
        configure_logs(level="warning", json=False)
        app = App([Agent(AGENT, _InstantModel(work))])
        RunlaneWorker(app, work.url, _settings(max_runs=work.slots, lease_ms=self.lease_ms)).run()

    @asynccontextmanager
    async def connect(self, url: str) -> AsyncGenerator["RunlaneProducer"]:
        """Connect through the public client, after making the agent known."""
        partition = Partition(url, prefix=_settings().prefix, retry_s=10)
        try:
            info = WorkerInfo(host="bench", pid=0, agents={AGENT: "1"}, max_runs=0)
            await register(partition, worker_id="bench", lease_ms=0, info=info)
            async with await Client.connect(url, settings=_settings()) as client:
                yield RunlaneProducer(client, partition)
        finally:
            await partition.close()


class RunlaneProducer:
    """Every run has a session of its own, so that nothing but slots limits how many go on."""

    def __init__(self, client: Client, partition: Partition) -> None:
        self._client = client
        self._partition = partition
        self._sessions: list[str] = []

    async def enqueue(self, number: int) -> None:
        """Ask for one run."""
        session_id = f"session-{number}"
        await self._client.session(session_id, agent=AGENT).run(str(number))
        self._sessions.append(session_id)

    async def unfinished(self) -> int:
        """Return the number of runs in the agent's queue; a run leaves it when it ends."""
        count: int = await self._partition.call("ZCARD", self._partition.keys.queue(AGENT))
        return count

    async def ended(self) -> int:
        """Return the number of sessions whose journal holds all records of one run."""
        lengths = await asyncio.gather(
            *(self._partition.call("XLEN", self._partition.keys.log(s)) for s in self._sessions)
        )
        return sum(length == RECORDS_PER_RUN for length in lengths)

    async def started_at_ms(self) -> dict[int, int]:
        """Return the server time of each run's `run_started` record, by number."""
        return {
            int(record.body.message.content): record.at_ms
            for session_id in self._sessions
            async for record in self._client.session(session_id).records()
            if isinstance(record.body, RunStarted)
        }


class _InstantModel(ModelAdapter):
    """Marks the beginning of a run and answers with one complete message, or never."""

    name = "instant"

    def __init__(self, work: Work) -> None:
        self._marks = Marks(Path(work.marks))
        self._hang = work.hang

    async def startup(self) -> None:
        await self._marks.line_up()

    async def stream(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AsyncIterator[ModelResponseCompleted]:
        message = context.messages[-1]
        assert isinstance(message, UserMessage)
        self._marks.write(int(message.content))
        if self._hang:
            await cancellation.wait()
        yield ModelResponseCompleted(AssistantMessage("ok"), ModelUsage(8, 1))


def _settings(*, max_runs: int | None = None, lease_ms: int | None = None) -> Settings:
    """Return the defaults, whatever the environment says."""
    return load_settings({}, max_runs=max_runs, lease_ms=lease_ms)
