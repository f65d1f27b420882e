"""What a run left behind, and what was heard of it."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from tests.checkers.invariants import check_keyspace
from tests.e2e.harness import Fleet
from tests.e2e.waiting import until

from runlane.journal.link import client_for
from runlane.journal.reader import event_of_message, record_of_message
from runlane.journal.wire.bodies import RunBody
from runlane.journal.wire.events import event_of
from runlane.journal.wire.records import (
    Record,
    RunFinished,
    ToolCompleted,
    ToolOutcome,
    ToolStarted,
)
from runlane.producer import Client, Event, EventKind, Session

BodyT = TypeVar("BodyT", bound=RunBody)
Call = tuple[int, int]
"""Turn and place in the response."""


@dataclass
class Story:
    """The records of one session."""

    session_id: str
    records: list[Record]

    @classmethod
    async def read(cls, client: Client, session_id: str) -> "Story":
        return cls(session_id, [record async for record in client.session(session_id).records()])

    @property
    def events(self) -> list[Event]:
        """The committed events, as every subscriber has to hear them: a checkpoint is none."""
        events = [event_of(self.session_id, record) for record in self.records]
        return [event for event in events if event.kind is not EventKind.CHECKPOINT]

    def all(self, kind: type[BodyT], run_id: str = "") -> list[BodyT]:
        """Return the records of a kind, oldest first."""
        bodies = [record.body for record in self.records]
        return [b for b in bodies if isinstance(b, kind) and run_id in ("", b.run_id)]

    def end(self, run_id: str) -> RunFinished:
        """Return the one terminal record of a run."""
        (finished,) = self.all(RunFinished, run_id)
        return finished

    def results(self, run_id: str) -> dict[Call, ToolCompleted]:
        """Return the one result of each call."""
        completed = self.all(ToolCompleted, run_id)
        found = {(body.turn, body.index): body for body in completed}
        assert len(found) == len(completed), "a call has two results"
        return found


@dataclass
class Heard:
    """What a subscriber has heard so far."""

    events: list[Event] = field(default_factory=list[Event])

    @property
    def committed(self) -> list[Event]:
        return [event for event in self.events if event.committed]

    def kinds(self, run_id: str = "") -> list[EventKind]:
        return [event.kind for event in self.events if run_id in ("", event.run_id)]

    async def until(self, kind: EventKind, run_id: str = "") -> None:
        await until(lambda: kind in self.kinds(run_id), f"{kind} of run {run_id or 'any'} is heard")

    async def until_ended(self, run_id: str) -> None:
        await self.until(EventKind.AGENT_FINISHED, run_id)


@asynccontextmanager
async def hearing(fleet: Fleet, session: Session) -> AsyncGenerator[Heard]:
    """Follow a session within the block, which begins when the server has confirmed that."""
    heard = Heard()
    channel = fleet.keys.events(session.session_id)

    async def listen() -> None:
        async with aclosing(session.events()) as events:
            async for event in events:
                heard.events.append(event)

    async def is_subscribed() -> bool:
        ((_, listeners),) = await cast("Any", redis).pubsub_numsub(channel)
        return bool(listeners)

    task = asyncio.create_task(listen())
    try:
        async with client_for(fleet.url) as redis:
            await until(is_subscribed, f"somebody listens to {session.session_id}")
        yield heard
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def tapping(fleet: Fleet, session_id: str) -> AsyncGenerator[Heard]:
    """Hear everything that is published about a session, as the server passes it on."""
    heard = Heard()
    client = client_for(fleet.url)
    pubsub: Any = cast("Any", client).pubsub()

    async def listen() -> None:
        async for message in pubsub.listen():
            if message["type"] == "message":
                letter, content = message["data"][:1], message["data"][1:]
                assert letter in (b"R", b"P"), "no record of these tests is large"
                heard.events.append(
                    event_of(session_id, record_of_message(content))
                    if letter == b"R"
                    else event_of_message(content)
                )

    async with client, pubsub:
        await pubsub.subscribe(fleet.keys.events(session_id))
        await pubsub.get_message(timeout=None)  # the server's confirmation
        task = asyncio.create_task(listen())
        try:
            yield heard
            assert not task.done()
        finally:
            task.cancel()
            await asyncio.wait([task])


async def check_rest(fleet: Fleet) -> None:
    """Check every key of a deployment in which nothing goes on."""
    async with client_for(fleet.url) as redis:
        await check_keyspace(redis, fleet.prefix, quiescent=True)


def check_calls(fleet: Fleet, stories: Iterable[Story], *, reconciled: str = "charge") -> None:
    """Check results of calls against what was really done.

    No side effect happened twice; one whose attempt died is called unknown, unless its handler
    can look it up; nothing that is reported as done was left out.
    """
    for story in stories:
        intents = {body.operation_key: body for body in reversed(story.all(ToolStarted))}
        executed = Counter(e.key for e in fleet.ledger.all(session=story.session_id))
        assert executed.keys() <= intents.keys(), "a call was done without an intent"
        for body in story.all(ToolCompleted):
            key = f"{body.run_id}:{body.turn}:{body.index}"
            if key not in intents or intents[key].effect != "side_effecting":
                continue
            assert executed[key] <= 1, f"{key} was done {executed[key]} times"
            lost = intents[key].attempt < body.attempt
            if body.message.tool_name == reconciled:
                assert body.outcome is not ToolOutcome.OK or executed[key] == 1
            else:
                assert (body.outcome is ToolOutcome.UNKNOWN) == lost, f"{key}: {body.outcome}"
            if body.outcome is ToolOutcome.OK:
                assert executed[key] == 1, f"{key} was reported, and not done"
