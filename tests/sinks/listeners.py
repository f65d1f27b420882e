"""Sinks that do what sinks should, and what they should not."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from runlane.journal.lease import Lease
from runlane.worker.events import AgentEvent
from runlane.worker.session.sinks import Delivery

DEADLINE_S = 20.0

LEASE = Lease(
    run_id="run", session_id="s", branch_id="main", queue="support", fence="1:a", attempt=1
)


class OddSignal(BaseException):
    """No `Exception`."""


@dataclass
class Listener:
    """Keeps what it hears."""

    events: list[AgentEvent] = field(default_factory=list[AgentEvent])

    async def emit(self, event: AgentEvent) -> None:
        self.events.append(event)

    @property
    def committed(self) -> list[AgentEvent]:
        return [event for event in self.events if event.committed]


@dataclass
class Failing(Listener):
    """Hears an event and fails."""

    fail: Callable[[], None] = lambda: None

    async def emit(self, event: AgentEvent) -> None:
        await super().emit(event)
        self.fail()


@dataclass
class Hanging(Listener):
    """Hears an event and then waits until it is let go."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    entered: asyncio.Event = field(default_factory=asyncio.Event)

    async def emit(self, event: AgentEvent) -> None:
        await super().emit(event)
        self.entered.set()
        await self.gate.wait()


async def ended(delivery: Delivery) -> None:
    """Close a delivery and wait for its end."""
    delivery.close()
    assert delivery.task is not None
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.wait([delivery.task])
