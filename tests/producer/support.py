"""Wait for things, with a deadline."""

import asyncio
import io
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

from tests.transfer.folding import Records

from runlane.journal.ids import new_run_id
from runlane.journal.partition import Partition
from runlane.journal.wire.messages import AssistantMessage, UserMessage
from runlane.journal.wire.records import MessageAppended, RunFinished, RunStarted
from runlane.journal.wire.results import AgentRunResult, StopReason
from runlane.producer import Client, Event, EventKind, Session

DEADLINE_S = 20.0


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Return once the condition holds."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            holds = condition()
            if holds if isinstance(holds, bool) else await holds:
                return
            await asyncio.sleep(0.005)


async def until_subscribed(partition: Partition, session: Session, *, count: int = 1) -> None:
    """Wait until the server serves so many subscriptions to the session."""
    channel = partition.keys.events(session.session_id)

    async def holds() -> bool:
        _, found = await partition.call("PUBSUB", "NUMSUB", channel)
        return bool(found == count)

    await until(holds)


async def all_of(source: AsyncGenerator[Event, None]) -> list[Event]:
    """Return the events of an iterator that ends."""
    async with asyncio.timeout(DEADLINE_S), aclosing(source):
        return [event async for event in source]


async def first(count: int, source: AsyncGenerator[Event, None]) -> list[Event]:
    """Return the first events of an iterator that may go on."""
    events: list[Event] = []
    async with asyncio.timeout(DEADLINE_S), aclosing(source):
        async for event in source:
            events.append(event)
            if len(events) == count:
                break
    return events


@dataclass
class Listener:
    """What somebody who listens has heard so far."""

    heard: list[Event] = field(default_factory=list[Event])

    @property
    def committed(self) -> list[Event]:
        return [event for event in self.heard if event.committed]

    @property
    def revisions(self) -> list[int]:
        return [event.revision for event in self.committed]

    @property
    def text(self) -> str:
        """The streamed text of all turns, checked to be without gap or overlap."""
        parts: dict[tuple[str, int, int], str] = {}
        for event in self.heard:
            if event.kind is EventKind.ASSISTANT_TEXT_DELTA:
                place = event.run_id, event.attempt, event.turn
                known = parts.get(place, "")
                assert event.payload["offset"] == len(known)
                parts[place] = known + event.payload["delta"]
        return "".join(parts.values())

    async def until_kind(self, kind: EventKind) -> None:
        await until(lambda: any(event.kind is kind for event in self.heard))

    async def until_revision(self, revision: int) -> None:
        await until(lambda: any(event.revision >= revision for event in self.committed))


@asynccontextmanager
async def listening(
    source: AsyncGenerator[Event, None], *, pause: Callable[[], Awaitable[None]] | None = None
) -> AsyncGenerator[Listener, None]:
    """Listen within the block; `pause` is awaited after each event."""
    listener = Listener()

    async def listen() -> None:
        async with aclosing(source):
            async for event in source:
                listener.heard.append(event)
                if pause is not None:
                    await pause()

    task = asyncio.create_task(listen())
    try:
        yield listener
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()


def add_run(records: Records, branch: str, task: str) -> None:
    """Add a run of three records to a session in memory."""
    run_id = new_run_id()
    began = RunStarted(
        run_id=run_id,
        attempt=1,
        agent="support",
        version="1",
        worker_id="w",
        message=UserMessage(task),
    )
    said = MessageAppended(run_id=run_id, attempt=1, turn=1, message=AssistantMessage("yes"))
    reason = StopReason.TEXT_RESPONSE
    result = AgentRunResult(status=reason.status, stop_reason=reason, turns=1, output="yes")
    for body in (began, said, RunFinished(run_id=run_id, branch_id=branch, result=result)):
        records.add(branch, body)


async def exported(session: Session) -> bytes:
    """Return a session as a file."""
    out = io.BytesIO()
    await session.export_jsonl(out)
    return out.getvalue()


async def moved(client: Client, session: Session, name: str = "moved") -> Session:
    """Export a session and import it under another name."""
    there = client.session(name)
    await there.import_jsonl(io.BytesIO(await exported(session)))
    return there
