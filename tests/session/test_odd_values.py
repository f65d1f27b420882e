"""Odd values of an application end no session: its run ends well, and the next one reads it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.journal.driving import Driver
from tests.session.steered import Speaker, carried_out

from runlane.journal.wire.messages import AssistantMessage, ModelToolCall, ModelUsage
from runlane.journal.wire.results import StopReason
from runlane.worker import (
    CancellationToken,
    ModelContext,
    ModelResponseCompleted,
    StepOutcome,
    ToolCallContext,
    ToolMiddleware,
    tool,
)
from runlane.worker.models import ModelStreamEvent
from runlane.worker.tools import ToolNext

ACT = AssistantMessage(tool_calls=(ModelToolCall("c", "act", "{}"),))
DONE = AssistantMessage("done")


class Reporting(Speaker):
    """Says that it cost something odd."""

    def __init__(self, usage: Any) -> None:
        super().__init__([DONE])
        self._usage = usage

    async def stream(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AsyncIterator[ModelStreamEvent]:
        async for event in super().stream(context, cancellation=cancellation):
            if isinstance(event, ModelResponseCompleted):
                yield ModelResponseCompleted(event.message, self._usage)
            else:
                yield event


async def check_next_run(driver: Driver) -> None:
    """Check that the session goes on, and that what was said in it is read."""
    await driver.submit()
    model = Speaker([AssistantMessage("again")])
    result = await carried_out(driver, model)
    assert (result.stop_reason, result.output) == (StopReason.TEXT_RESPONSE, "again")
    assert DONE in model.asked[0].messages


def used(tokens: Any) -> ModelUsage:
    return ModelUsage(tokens, 1)


@pytest.mark.parametrize("usage", [{"input_tokens": 5}, used(2**70), used(10.5)])
async def test_usage_that_cannot_be_counted_ends_no_session(driver: Driver, usage: Any) -> None:
    await driver.submit()
    result = await carried_out(driver, Reporting(usage))
    assert (result.output, result.usage.complete) == ("done", False)
    await check_next_run(driver)


async def test_a_counter_without_a_name_leaves_the_session_readable(driver: Driver) -> None:
    class Counting(ToolMiddleware):
        async def __call__(self, context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
            number: Any = 7
            context.count(number)
            return await call_next(context)

    @tool
    async def act() -> str:
        """Do it."""
        return "acted"

    await driver.submit()
    model = Speaker([ACT, DONE])
    result = await carried_out(driver, model, tools=[act], middlewares=[Counting()])
    assert result.output == "done"
    await check_next_run(driver)


async def test_a_report_that_no_event_can_hold_keeps_no_run_from_its_end(driver: Driver) -> None:
    acted: list[str] = []

    @tool
    async def act(context: ToolCallContext) -> str:
        """Report a number that is too large."""
        await context.progress.report("far", {"n": 2**70})
        acted.append(context.operation_key)
        return "charged"

    await driver.submit()
    model = Speaker([ACT, DONE])
    result = await carried_out(driver, model, tools=[act])
    assert result.output == "done"
    assert len(acted) == 1
    assert "charged" in str(model.asked[1].messages[-1])
    await check_next_run(driver)
