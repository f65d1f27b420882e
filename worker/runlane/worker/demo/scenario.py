"""What the sessions do: a run, a follow-up while it is active, and a continue after both."""

import asyncio
import time
from contextlib import aclosing
from typing import Final

from runlane.journal.errors import RunlaneError
from runlane.journal.wire.events import EventKind
from runlane.producer.client import Client
from runlane.producer.handles import RunHandle
from runlane.worker.demo.observed import SessionTrace
from runlane.worker.demo.tasks import AGENT, Tasks

SESSION_COUNT: Final = 20
RUNS_PER_SESSION: Final = 3
LAST_EVENT_TIMEOUT_S: Final = 10.0


def session_ids() -> list[str]:
    """Return the names of the sessions."""
    return [f"demo-{number:02}" for number in range(1, SESSION_COUNT + 1)]


class Conversation:
    """One session: its subscriber from the beginning, and its three runs.

    Args:
        client: The producer's side.
        trace: Where everything is noted.
        tasks: What is asked.
    """

    def __init__(self, client: Client, trace: SessionTrace, tasks: Tasks) -> None:
        self._session = client.session(trace.session_id, agent=AGENT)
        self._trace = trace
        self._tasks = tasks
        self._news = asyncio.Event()

    async def play(self) -> None:
        """Ask for the three runs and follow them; an error is noted, and ends the session."""
        try:
            async with asyncio.TaskGroup() as group:
                subscriber = group.create_task(self._subscribe())
                await self._ask()
                subscriber.cancel()
        except* RunlaneError as errors:
            self._trace.failure = "; ".join(str(error) for error in errors.exceptions)

    async def read_journal(self) -> None:
        """Read what the subscriber should have heard.

        Raises:
            ServerUnavailableError: The server is away.
        """
        self._trace.records = [record async for record in self._session.records()]

    async def _ask(self) -> None:
        first = self._accepted(await self._session.run(self._tasks.first))
        await self._until(EventKind.AGENT_STARTED, first)
        second = self._accepted(await self._session.follow_up(self._tasks.follow_up))
        for run in (first, second):
            self._trace.results[run.run_id] = await run.result()
        third = self._accepted(await self._session.continue_run())
        self._trace.results[third.run_id] = await third.result()
        try:
            async with asyncio.timeout(LAST_EVENT_TIMEOUT_S):
                await self._until(EventKind.AGENT_FINISHED, third)
        except TimeoutError:
            self._trace.failure = "its subscriber did not hear the end of the last run"

    def _accepted(self, run: RunHandle) -> RunHandle:
        self._trace.accepted.append(run.run_id)
        return run

    async def _subscribe(self) -> None:
        async with aclosing(self._session.events()) as events:
            async for event in events:
                self._trace.hear(event, time.monotonic())
                self._news.set()

    async def _until(self, kind: EventKind, run: RunHandle) -> None:
        while not self._trace.has_heard(kind, run.run_id):
            self._news.clear()
            await self._news.wait()
