"""The arguments of a call, once it has begun with them."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.tools.middleware.support import Acting, Intents, call, call_through
from tests.tools.support import context_for, prepared, runtime_of

from runlane.worker.tools import (
    MethodToolHandler,
    StepOutcome,
    ToolCallContext,
    ToolDefinition,
    ToolEffect,
    ToolMiddleware,
    ToolNext,
    tool,
)


class Emptying(MethodToolHandler):
    """Takes everything out of the arguments that it is given.

    Attributes:
        got: The arguments of each call.
    """

    tools = (ToolDefinition(name="empty", effect=ToolEffect.IDEMPOTENT),)

    def __init__(self) -> None:
        super().__init__()
        self.got: list[dict[str, Any]] = []

    async def do_empty(self, arguments: dict[str, Any]) -> StepOutcome:
        self.got.append({**arguments, "items": [*arguments["items"]]})
        arguments["items"].clear()
        arguments.clear()
        return StepOutcome("emptied")


async def call_twice(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    await call_next(context)
    return await call_next(context)


@pytest.mark.parametrize(("middlewares", "times"), [((), 1), ((Acting(call_twice),), 2)])
async def test_what_a_handler_does_to_its_arguments_stays_with_it(
    middlewares: tuple[ToolMiddleware, ...], times: int
) -> None:
    handler, intents = Emptying(), Intents()
    async with runtime_of(handlers=[handler], middlewares=middlewares) as runtime:
        ready = prepared(runtime, "empty", items=[1])
        await runtime.execute(ready, context_for(ready), begin=intents.begin)
    assert handler.got == [{"items": [1]}] * times
    assert intents.begun == [{"items": [1]}]
    assert ready.arguments == {"items": [1]}


async def test_a_repeated_call_has_the_arguments_that_it_began_with() -> None:
    async def change(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        await call_next(replace(context, arguments={"items": [2]}))
        context.arguments["items"].append(3)
        await call_next(context)
        return await call_next(replace(context, arguments={"unfit": 4}))

    handler, intents = Emptying(), Intents()
    async with runtime_of(handlers=[handler], middlewares=[Acting(change)]) as runtime:
        await call(runtime, "empty", intents=intents, items=[1])
    assert handler.got == [{"items": [2]}] * 3
    assert intents.begun == [{"items": [2]}]


async def test_arguments_that_are_equal_are_not_the_same() -> None:
    async def change(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        return await call_next(replace(context, arguments={"item": True, "more": (1.0,)}))

    @tool
    async def show(item: Any, more: Any) -> str:
        return f"{item} {more}"

    intents = Intents()
    result = await call_through([change], show, intents=intents, item=1, more=[1])
    assert result.content == "True [1.0]"
    assert str(intents.begun) == "[{'item': True, 'more': [1.0]}]"


@pytest.mark.parametrize("arguments", [{"amount": 100}, {"amount": "much"}, None])
async def test_a_call_that_had_begun_before_keeps_its_arguments(arguments: Any) -> None:
    async def change(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        return await call_next(replace(context, arguments=arguments))

    @tool(effect=ToolEffect.IDEMPOTENT)
    async def put(amount: int) -> str:
        return f"put {amount}"

    intents = Intents()
    async with runtime_of(put, middlewares=[Acting(change)]) as runtime:
        ready = prepared(runtime, "put", amount=1)
        result = await runtime.execute(ready, context_for(ready), begin=intents.begin, begun=True)
    assert result.content == "put 1"
    assert intents.begun == [{"amount": 1}]
