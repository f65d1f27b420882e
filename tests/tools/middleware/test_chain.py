import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from tests.tools.middleware.support import Acting, Intents, call, call_through, go_on
from tests.tools.support import execute, prepared, runtime_of

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.records import ToolOutcome
from runlane.worker.tools import (
    FunctionToolHandler,
    RuleBasedToolPolicy,
    StepOutcome,
    ToolCallContext,
    ToolControl,
    ToolDefinition,
    ToolEffect,
    ToolError,
    ToolMiddleware,
    ToolNext,
    ToolResult,
    ToolRuntime,
    tool,
)


@tool
async def pay(amount: int, notes: list[str] | None = None) -> str:
    return f"paid {amount} {notes}"


@tool(effect=ToolEffect.READ_ONLY)
async def look(city: str = "Rome") -> str:
    return f"sunny in {city}"


def payload(result: ToolResult) -> Any:
    return json.loads(result.content)


async def test_the_first_middleware_is_the_outermost() -> None:
    order: list[str] = []

    class Noting(ToolMiddleware):
        def __init__(self, name: str) -> None:
            self._name = name

        async def __call__(self, context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
            order.append(f"{self._name} before")
            outcome = await call_next(context)
            order.append(f"{self._name} after")
            return StepOutcome(f"{self._name}({outcome.data})", outcome.control)

    async with runtime_of(look, middlewares=[Noting("a"), Noting("b")]) as runtime:
        result = await call(runtime, "look")
    assert order == ["a before", "b before", "b after", "a after"]
    assert result == ToolResult("a(b(sunny in Rome))", ToolOutcome.OK)


async def test_a_call_begins_after_all_middlewares_and_before_its_tool() -> None:
    order: list[str] = []

    async def note(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        order.append("middleware")
        return await call_next(context)

    async def note_intent() -> None:
        order.append("begin")

    @tool
    async def act() -> None:
        order.append("tool")

    await call_through([note, note], act, intents=Intents(note_intent))
    assert order == ["middleware", "middleware", "begin", "tool"]


async def test_a_middleware_may_answer_in_the_place_of_the_tool() -> None:
    async def answer(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        return StepOutcome("from the cache", ToolControl.COMPLETE)

    intents = Intents()
    result = await call_through([answer], pay, intents=intents, amount=1)
    assert result == ToolResult(
        "from the cache", ToolOutcome.OK, ToolControl.COMPLETE, "from the cache"
    )
    assert intents.begun == []


async def test_a_call_that_a_middleware_rejects_is_an_error() -> None:
    async def reject(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        return StepOutcome("no", ToolControl.REJECT)

    result = await call_through([reject], pay, amount=1)
    assert (result.outcome, result.control) == (ToolOutcome.ERROR, ToolControl.REJECT)


def changing(**arguments: Any) -> Any:
    async def change(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        return await call_next(replace(context, arguments={**context.arguments, **arguments}))

    return change


async def test_changed_arguments_are_those_that_begin_and_are_used() -> None:
    intents = Intents()
    result = await call_through([changing(amount=5)], pay, intents=intents, amount=1)
    assert intents.begun == [{"amount": 5}]
    assert result.content == "paid 5 None"


async def test_nothing_but_the_arguments_of_a_call_can_be_changed() -> None:
    @tool(effect=ToolEffect.READ_ONLY)
    async def which(context: ToolCallContext) -> list[str]:
        return [context.operation_key, context.tool_name, context.tool_definition.name]

    async def change(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        other = ToolDefinition("other", effect=ToolEffect.READ_ONLY)
        changed = replace(context, operation_key="x", tool_name="other", tool_definition=other)
        return await call_next(changed)

    assert payload(await call_through([change], which)) == ["run:2:0", "which", "which"]


async def test_arguments_changed_in_place_are_those_of_this_call_only() -> None:
    async def change(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        context.arguments["amount"] += 1
        context.arguments["notes"].append("checked")
        return await call_next(context)

    intents = Intents()
    async with runtime_of(pay, middlewares=[Acting(change)]) as runtime:
        ready = prepared(runtime, "pay", amount=1, notes=["a"])
        for _ in range(2):
            result = await execute(runtime, ready, begin=intents.begin)
            assert result.content == "paid 2 ['a', 'checked']"
    assert intents.begun == [{"amount": 2, "notes": ["a", "checked"]}] * 2
    assert ready.arguments == {"amount": 1, "notes": ["a"]}


async def test_changed_arguments_become_json_before_they_are_used() -> None:
    intents = Intents()
    result = await call_through([changing(notes=("a", "b"))], pay, intents=intents, amount=1)
    assert intents.begun == [{"amount": 1, "notes": ["a", "b"]}]
    assert result.content == "paid 1 ['a', 'b']"


async def test_changed_arguments_that_do_not_fit_begin_nothing() -> None:
    intents = Intents()
    result = await call_through([changing(amount="much")], pay, intents=intents, amount=1)
    assert payload(result) == {
        "status": "error",
        "tool": "pay",
        "code": "invalid_tool_arguments",
        "errors": [{"path": "/amount", "keyword": "type", "message": "Expected `int`, got `str`"}],
    }
    assert intents.begun == []


@pytest.mark.parametrize("arguments", [None, [1], {("a", "b"): 1}, {"amount": 10**5000}])
async def test_changed_arguments_that_are_no_json_object_begin_nothing(arguments: Any) -> None:
    async def change(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        return await call_next(replace(context, arguments=arguments))

    intents = Intents()
    result = await call_through([change], pay, intents=intents, amount=1)
    assert payload(result)["error"] == "a middleware made no JSON object of the arguments"
    assert intents.begun == []


async def twice(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    first = await call_next(context)
    second = await call_next(context)
    return StepOutcome([first.data, second.data])


async def both_at_once(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    outcomes = await asyncio.gather(call_next(context), call_next(context))
    return StepOutcome([each.data for each in outcomes])


@pytest.mark.parametrize("repeat", [twice, both_at_once])
@pytest.mark.parametrize("effect", [ToolEffect.READ_ONLY, ToolEffect.IDEMPOTENT])
async def test_a_harmless_call_may_be_repeated_and_begins_once(
    effect: ToolEffect, repeat: Any
) -> None:
    @tool(effect=effect)
    async def number() -> int:
        made.append(1)
        return len(made)

    made: list[int] = []
    intents = Intents()
    result = await call_through([repeat], number, intents=intents)
    assert result == ToolResult("[1, 2]", ToolOutcome.OK)
    assert intents.begun == [{}]


@pytest.mark.parametrize("repeat", [twice, both_at_once])
async def test_a_call_with_side_effects_is_made_once_only(repeat: Any) -> None:
    @tool
    async def charge() -> str:
        made.append(1)
        return "charged"

    made: list[int] = []
    result = await call_through([repeat], charge)
    told = result.content
    assert told == "charged" or "the call was made, but then: a call with side effects" in told
    assert made == [1]


async def test_a_retry_of_a_failed_call_with_side_effects_is_refused() -> None:
    @tool
    async def charge() -> str:
        made.append(1)
        raise ValueError("unreachable")

    async def retry(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        try:
            return await call_next(context)
        except ValueError:
            return await call_next(context)

    made: list[int] = []
    result = await call_through([retry], charge)
    assert payload(result)["error"] == "a call with side effects is made once only"
    assert made == [1]


async def swallow(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    try:
        return await call_next(context)
    except Exception:
        return StepOutcome("swallowed")


async def swallow_and_retry(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    for _ in range(3):
        await swallow(context, call_next)
    return StepOutcome("swallowed")


async def swallow_and_fail(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    await swallow(context, call_next)
    raise KeyError("another")


@pytest.mark.parametrize("act", [swallow, swallow_and_retry, swallow_and_fail, go_on])
async def test_what_begin_raises_leaves_the_call_whatever_is_swallowed(
    act: Any, caplog: pytest.LogCaptureFixture
) -> None:
    @tool(effect=ToolEffect.READ_ONLY)
    async def touch() -> None:
        pytest.fail("must not start")

    async def lose_the_lease() -> None:
        raise lost

    lost = LookupError("the lease is lost")
    with pytest.raises(LookupError) as raised:
        await call_through([act], touch, intents=Intents(lose_the_lease))
    assert raised.value is lost
    assert caplog.records == []


async def test_what_a_tool_raises_reaches_the_middleware() -> None:
    @tool
    async def fail() -> None:
        raise ValueError("no such order")

    assert (await call_through([swallow], fail)).content == "swallowed"
    result = await call_through([go_on], fail)
    assert payload(result) == {"status": "error", "tool": "fail", "error": "no such order"}


async def fail_before(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    raise KeyError("no config")


async def fail_after(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    await call_next(context)
    raise KeyError("no config")


async def refuse_before(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    raise ToolError("not today")


async def leave_before(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    raise SystemExit(3)


async def return_nothing(context: ToolCallContext, call_next: ToolNext) -> Any:
    await call_next(context)


async def return_data_at_once(context: ToolCallContext, call_next: ToolNext) -> Any:
    return "data"


@pytest.mark.parametrize(
    ("act", "error", "logged"),
    [
        (fail_before, "'no config'", True),
        (fail_after, "the call was made, but then: 'no config'", True),
        (refuse_before, "not today", False),
        (leave_before, "the tool raised SystemExit: 3", True),
        (return_data_at_once, "Acting returned str, not a StepOutcome", True),
        (
            return_nothing,
            "the call was made, but then: Acting returned NoneType, not a StepOutcome",
            True,
        ),
    ],
)
async def test_a_middleware_that_fails_is_an_error_result(
    act: Any, error: str, logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    result = await call_through([go_on, act], pay, amount=1)
    assert result.outcome is ToolOutcome.ERROR
    assert payload(result) == {"status": "error", "tool": "pay", "error": error}
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * logged


class Living(ToolMiddleware):
    """Notes its life in a list that several share."""

    def __init__(self, name: str, life: list[str], *, fails: str = "") -> None:
        self._name = name
        self._life = life
        self._fails = fails

    def configure_tools(self, definitions: Sequence[ToolDefinition]) -> None:
        self._note("configure", *(each.name for each in definitions))

    async def startup(self) -> None:
        self._note("start")

    async def shutdown(self) -> None:
        self._note("stop")

    async def __call__(self, context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        return await call_next(context)

    def _note(self, moment: str, *what: str) -> None:
        self._life.append(" ".join((moment, self._name, *what)))
        if self._fails == moment:
            raise InvalidInputError(f"{moment} failed")


async def test_middlewares_are_configured_then_started_and_stop_in_reverse() -> None:
    life: list[str] = []
    async with runtime_of(look, middlewares=[Living("a", life), Living("b", life)]):
        assert life == ["configure a look", "configure b look", "start a", "start b"]
    assert life[4:] == ["stop b", "stop a"]


async def test_without_a_tool_middlewares_are_not_started() -> None:
    life: list[str] = []
    async with runtime_of(middlewares=[Living("a", life)]):
        pass
    assert life == []


@pytest.mark.parametrize(("fails", "stopped"), [("configure", []), ("start", ["stop a"])])
async def test_a_failed_start_stops_what_had_started(fails: str, stopped: list[str]) -> None:
    life: list[str] = []
    middlewares = [Living("a", life), Living("b", life, fails=fails)]
    runtime = ToolRuntime([FunctionToolHandler([look])], middlewares)
    with pytest.raises(InvalidInputError, match=f"{fails} failed"):
        await runtime.startup()
    assert [moment for moment in life if moment.startswith("stop")] == stopped
    assert runtime.definitions == ()


async def test_a_runtime_is_as_immediate_as_all_of_its_middlewares() -> None:
    class Immediate(Living):
        immediate = True

    assert ToolRuntime([]).immediate
    assert ToolRuntime([], [Immediate("a", [])]).immediate
    assert not ToolRuntime([], [Immediate("a", []), Living("b", [])]).immediate


def test_what_counts_on_the_start_of_a_run_is_refused() -> None:
    class Resetting(Living):
        async def on_task_start(self) -> None: ...

    class Forgetting(RuleBasedToolPolicy):
        async def on_task_start(self) -> None: ...

    with pytest.raises(InvalidInputError, match="Resetting has an on_task_start"):
        Resetting("a", [])
    with pytest.raises(InvalidInputError, match="Forgetting has an on_task_start"):
        Forgetting([])
