import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import date
from typing import Any

import pytest
from tests.tools.support import context_for, context_of_call, prepared, runtime_of

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.records import ToolOutcome
from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.tools import StepOutcome, ToolCallContext, ToolControl, ToolResult, tool


async def test_a_tool_without_a_reconciler_cannot_tell() -> None:
    @tool
    def pay(amount: int) -> str:
        return "paid"

    async with runtime_of(pay) as runtime:
        ready = prepared(runtime, "pay", amount=1)
        assert await runtime.reconcile(ready, context_for(ready)) is None


async def test_what_the_reconciler_finds_is_the_result() -> None:
    ledger = {"run:2:0": 5}

    @tool
    def pay(amount: int) -> str:
        return "paid"

    @pay.reconcile
    async def paid(context: ToolCallContext, amount: int) -> StepOutcome | None:
        if ledger.get(context.operation_key) != amount:
            return None
        return StepOutcome({"paid": amount}, ToolControl.COMPLETE)

    async with runtime_of(pay) as runtime:
        found, lost = [
            await runtime.reconcile(ready, context_for(ready))
            for ready in (prepared(runtime, "pay", amount=amount) for amount in (5, 6))
        ]
    assert found == ToolResult('{"paid": 5}', ToolOutcome.OK, ToolControl.COMPLETE, '{"paid": 5}')
    assert lost is None
    assert callable(paid)


async def test_a_reconciler_that_fails_or_is_stopped_cannot_tell() -> None:
    @tool(timeout_s=0.01)
    async def pay(amount: int) -> str:
        return "paid"

    @pay.reconcile
    async def paid(context: ToolCallContext, amount: int) -> None:
        if amount == 0:
            raise ConnectionError("bank is down")
        await asyncio.Event().wait()

    token = CancellationToken()
    token.cancel()
    async with runtime_of(pay) as runtime:
        for amount, context in (
            (0, context_of_call()),
            (1, context_of_call()),
            (1, context_of_call(token)),
        ):
            ready = prepared(runtime, "pay", amount=amount)
            assert await runtime.reconcile(ready, context_for(ready, context)) is None
    assert callable(paid)


async def test_the_reconciler_gets_the_context_and_every_argument() -> None:
    @tool
    def pay(amount: int, day: date = date(2026, 1, 1)) -> str:
        return "paid"

    context = context_of_call()
    assert await pay.ask_reconciler({"amount": 1}, context=context) is None

    @pay.reconcile
    async def paid(ctx: ToolCallContext, amount: int, day: date) -> dict[str, Any] | None:
        return {"key": ctx.operation_key, "day": day} if amount else None

    outcome = await pay.ask_reconciler({"amount": 1}, context=context)
    assert outcome == StepOutcome({"key": "run:2:0", "day": date(2026, 1, 1)})
    assert await pay.ask_reconciler({"amount": 0}, context=context) is None
    assert await paid(context, 0, date(2026, 1, 1)) is None


async def test_a_sync_reconciler_may_return_a_step_outcome() -> None:
    @tool
    def pay(amount: int) -> str:
        return "paid"

    @pay.reconcile
    def paid(ctx: ToolCallContext, **arguments: Any) -> StepOutcome:
        return StepOutcome(arguments, ToolControl.COMPLETE)

    outcome = await pay.ask_reconciler({"amount": 1}, context=context_of_call())
    assert outcome == StepOutcome({"amount": 1}, ToolControl.COMPLETE)
    assert paid(context_of_call()).data == {}


def test_a_reconciler_that_does_not_take_the_arguments_is_refused() -> None:
    @tool
    def pay(amount: int) -> str:
        return "paid"

    def forgetful(ctx: ToolCallContext) -> None:
        """Do."""

    with pytest.raises(InvalidInputError, match="reconcile must take the context and then amount"):
        pay.reconcile(forgetful)


def test_a_reconciler_that_is_a_generator_is_refused() -> None:
    @tool
    def pay() -> str:
        return "paid"

    def found(ctx: ToolCallContext) -> Iterator[str]:
        yield "paid"

    async def found_async(ctx: ToolCallContext) -> AsyncIterator[str]:
        yield "paid"

    for reconciler in (found, found_async):
        with pytest.raises(InvalidInputError, match="tool 'pay': reconcile is a generator"):
            pay.reconcile(reconciler)


async def test_a_reconciler_may_raise_anything_and_cannot_tell() -> None:
    @tool
    async def pay() -> str:
        return "paid"

    @pay.reconcile
    async def paid(context: ToolCallContext) -> None:
        raise GeneratorExit

    async with runtime_of(pay) as runtime:
        assert await runtime.reconcile(prepared(runtime, "pay"), context_of_call()) is None
    assert callable(paid)
