"""What a subscriber hears of a run, in the words in which tests compare it with the page."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from uuid import uuid4

from tests.e2e.harness import Fleet
from tests.e2e.observing import Heard, Story, check_calls, check_rest, hearing
from tests.e2e.waiting import DEADLINE_S, until

from runlane.producer import AgentRunResult, Client, Event, EventKind, RunHandle, Session

WORDS: Final = {
    "queued": "run_queued",
    "started": "agent_started",
    "continued": "agent_continued",
    "turn": "turn_started",
    "Δ": "assistant_text_delta",
    "response": "message_completed",
    "t+": "tool_started",
    "p": "tool_progressed",
    "t-": "tool_completed",
    "steered": "steering_applied",
    "discarded": "steering_discarded",
    "turned": "turn_completed",
    "aborted": "abort_requested",
    "finished": "agent_finished",
}
ASKED: Final = "queued started turn response"
ANSWER: Final = "turn Δ response turned"
END: Final = "turned finished"

OF_THE_QUEUE: Final = (EventKind.RUN_QUEUED, EventKind.ABORT_REQUESTED)
"""Their records are not on the branch: they may come between any two events of it."""


def order(*words: str) -> list[str]:
    return [WORDS[word] for word in " ".join(words).split()]


@dataclass
class Scene:
    """A session of its own, and a subscriber who has followed it from its beginning."""

    fleet: Fleet
    session: Session
    heard: Heard

    def kinds(self, handle: RunHandle) -> list[str]:
        """Return what was heard of a run, deltas that follow each other once."""
        collapsed = groupby(self.heard.kinds(handle.run_id))
        return [
            kind.value
            for kind, group in collapsed
            for _ in ([1] if kind.endswith("_delta") else group)
        ]

    @property
    def gate(self) -> str:
        return f"gate-of-{self.session.session_id}"

    def open(self) -> None:
        self.fleet.open(self.gate)

    async def until_held(self, times: int = 1) -> None:
        """Wait until so many tools of this session wait for its gate."""
        await until(
            lambda: len(self.fleet.ledger.all("hold", session=self.session.session_id)) == times,
            f"{times} tools wait for {self.gate}",
        )

    async def end(self, handle: RunHandle) -> AgentRunResult:
        """Wait for the end of a run, and until it was heard."""
        result = await handle.result(DEADLINE_S)
        await self.heard.until_ended(handle.run_id)
        return result

    async def run(self, task: str) -> tuple[AgentRunResult, list[str]]:
        """Return how a task ends that is left alone, and what was heard of it."""
        handle = await self.session.run(task)
        return await self.end(handle), self.kinds(handle)


def check_places(events: list[Event]) -> None:
    """Each event says when it happened and after which record, and records have an order."""
    assert all(event.at_ms > 0 for event in events)
    revisions = [event.revision for event in events if event.committed]
    places = [(e.revision, e.count) for e in events if e.kind not in OF_THE_QUEUE]
    assert revisions == sorted(set(revisions))
    assert places == sorted(set(places))


@asynccontextmanager
async def scene_of(fleet: Fleet, client: Client, agent: str) -> AsyncGenerator[Scene, None]:
    """Follow a new session; at the end, what was heard is what a replay says."""
    session = client.session(f"{agent}-{uuid4().hex[:8]}", agent=agent)
    async with hearing(fleet, session) as heard:
        yield Scene(fleet, session, heard)
    story = await Story.read(client, session.session_id)
    assert heard.committed == story.events
    check_places(heard.events)
    check_calls(fleet, [story])
    await check_rest(fleet)
