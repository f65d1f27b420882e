"""A run that is executed here, on a real server, and to which something is said meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final

from tests.journal.driving import Driver

from runlane.journal.lease import Lease
from runlane.journal.wire.messages import AssistantMessage
from runlane.journal.wire.records import Record
from runlane.journal.wire.results import AgentRunResult
from runlane.worker import (
    Agent,
    CancellationToken,
    ModelAdapter,
    ModelContext,
    ModelResponseCompleted,
    ModelTextDelta,
)
from runlane.worker.models import ModelStreamEvent
from runlane.worker.session.execute import execute
from runlane.worker.session.held import HeldLease

HELD_S: Final = 60.0
DEADLINE_S: Final = 30.0

Meanwhile = Callable[[int], Awaitable[object]]
"""Done while the model answers; given how many requests there have been."""


async def nothing(_: int) -> None:
    """Leave the run alone."""


class Speaker(ModelAdapter):
    """Gives one answer after another.

    Attributes:
        asked: What it was asked, oldest first.
    """

    def __init__(
        self, answers: Sequence[AssistantMessage | Exception], meanwhile: Meanwhile = nothing
    ) -> None:
        self.asked: list[ModelContext] = []
        self._answers = answers
        self._meanwhile = meanwhile

    async def stream(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AsyncIterator[ModelStreamEvent]:
        self.asked.append(context)
        answer = self._answers[len(self.asked) - 1]
        if isinstance(answer, AssistantMessage) and answer.content:
            yield ModelTextDelta(answer.content)
        await self._meanwhile(len(self.asked))
        if isinstance(answer, Exception):
            raise answer
        yield ModelResponseCompleted(answer)


def hold(lease: Lease) -> HeldLease:
    """Return a lease as a worker holds it."""
    return HeldLease(
        lease=lease,
        ends_at=time.monotonic() + HELD_S,
        cancellation=CancellationToken(),
        draining=asyncio.Event(),
    )


async def carried_out(driver: Driver, model: ModelAdapter, **agent: Any) -> AgentRunResult:
    """Execute the run that is due, as a worker does that hears no signals."""
    claim = await driver.claim()
    (run,) = claim.runs
    serving = Agent("a", model, **agent)
    await serving.startup()
    async with asyncio.timeout(DEADLINE_S):
        result = await execute(
            driver.partition,
            hold(run.lease),
            run.job,
            agents={"a": serving},
            worker_id="w1",
        )
    await serving.shutdown()
    assert result is not None
    await driver.check(quiescent=True)
    return result


def kinds(records: Sequence[Record]) -> list[str]:
    """Return the kinds of the records of a branch, from the start of its run on."""
    found = [record.kind for record in records if record.branch_id != "@control"]
    return found[found.index("run_started") :]
