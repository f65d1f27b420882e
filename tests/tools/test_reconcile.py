import asyncio

from tests.tools.support import context_of_call, prepared, runtime_of

from runlane.journal.wire.records import ToolOutcome
from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.tools import StepOutcome, ToolContext, ToolControl, ToolResult, tool


async def test_a_tool_without_a_reconciler_cannot_tell() -> None:
    @tool
    def pay(amount: int) -> str:
        return "paid"

    async with runtime_of(pay) as runtime:
        assert (
            await runtime.reconcile(prepared(runtime, "pay", amount=1), context_of_call()) is None
        )


async def test_what_the_reconciler_finds_is_the_result() -> None:
    ledger = {"run:2:0": 5}

    @tool
    def pay(amount: int) -> str:
        return "paid"

    @pay.reconcile
    async def paid(context: ToolContext, amount: int) -> StepOutcome | None:
        if ledger.get(context.operation_key) != amount:
            return None
        return StepOutcome({"paid": amount}, ToolControl.COMPLETE)

    async with runtime_of(pay) as runtime:
        found = await runtime.reconcile(prepared(runtime, "pay", amount=5), context_of_call())
        lost = await runtime.reconcile(prepared(runtime, "pay", amount=6), context_of_call())
    assert found == ToolResult('{"paid": 5}', ToolOutcome.OK, ToolControl.COMPLETE, '{"paid": 5}')
    assert lost is None
    assert callable(paid)


async def test_a_reconciler_that_fails_or_is_stopped_cannot_tell() -> None:
    @tool(timeout_s=0.01)
    async def pay(amount: int) -> str:
        return "paid"

    @pay.reconcile
    async def paid(context: ToolContext, amount: int) -> None:
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
            assert await runtime.reconcile(ready, context) is None
    assert callable(paid)
