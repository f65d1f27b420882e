"""What an application gives may be odd: nothing is lost by it, and the journal stays readable."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from tests.loop.agents import World, agent_of
from tests.loop.memory_run import Journal, MemoryRun
from tests.loop.scripted_model import ScriptedModel, call, calls, raw_call, text

from runlane.journal.wire.codec import decode_body, encode_body
from runlane.journal.wire.messages import AssistantMessage, ModelToolCall, ModelUsage
from runlane.journal.wire.records import ToolCompleted, ToolOutcome
from runlane.journal.wire.results import StopReason
from runlane.worker import (
    Agent,
    BehaviorHook,
    CancellationToken,
    MethodToolHandler,
    ModelAdapter,
    ModelContext,
    ModelResponseCompleted,
    StepOutcome,
    ToolCallContext,
    ToolDefinition,
    tool,
)
from runlane.worker.models import ModelStreamEvent
from runlane.worker.tools import ArgumentError


def results(journal: Journal) -> list[ToolCompleted]:
    return [body for body in journal.bodies if isinstance(body, ToolCompleted)]


def check_readable(journal: Journal) -> None:
    for body in journal.bodies:
        assert decode_body(*encode_body(body)) == body


class Reporting(ModelAdapter):
    """Answers, and says that it cost something odd."""

    def __init__(self, usage: Any) -> None:
        self._usage = usage

    async def stream(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AsyncIterator[ModelStreamEvent]:
        yield ModelResponseCompleted(AssistantMessage("done"), self._usage)


@pytest.mark.parametrize("usage", [{"input_tokens": 1}, "much", 7])
async def test_what_is_no_usage_is_unknown_usage(run: MemoryRun, usage: Any) -> None:
    ending = await run.carry_on(Agent("agent", Reporting(usage)))
    assert ending.output == "done"
    assert run.result is not None
    assert (run.result.usage.request_count, run.result.usage.complete) == (1, False)


@pytest.mark.parametrize("tokens", [10.5, 2**70, -1, True, None])
async def test_tokens_that_are_no_count_are_unknown(
    run: MemoryRun, journal: Journal, tokens: Any
) -> None:
    await run.carry_on(Agent("agent", Reporting(ModelUsage(tokens, 1))))
    assert run.result is not None
    assert not run.result.usage.complete
    check_readable(journal)


@pytest.mark.parametrize("name", [7, "", "x" * 129, "\ud800", None])
async def test_a_counter_needs_a_name(
    run: MemoryRun, world: World, journal: Journal, name: Any
) -> None:
    @tool
    async def counts(context: ToolCallContext) -> int:
        """Count by an odd name."""
        return context.count(name)

    await run.carry_on(agent_of([calls(call("counts")), text("done")], world, more=[counts]))
    assert "a counter's name" in results(journal)[0].message.content
    check_readable(journal)


async def test_a_report_that_no_event_can_hold_is_left_out(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    @tool
    async def reports(context: ToolCallContext) -> str:
        """Report too much."""
        await context.progress.report("x", {"n": 2**70})
        await context.progress.report("x", "y" * 100_000)
        await context.progress.report("x", {(1, 2): 3})
        await context.progress.report("fine")
        return "reported"

    await run.carry_on(agent_of([calls(call("reports")), text("done")], world, more=[reports]))
    assert results(journal)[0].message.content == "reported"
    assert run.trace.count("tool_progressed") == 1


class Unchecking(MethodToolHandler):
    """Fails where it should say whether the arguments fit."""

    tools = (ToolDefinition(name="odd"),)

    def argument_errors(self, name: str, arguments: Mapping[str, Any]) -> tuple[ArgumentError, ...]:
        raise KeyError("oops")

    async def do_odd(self, arguments: dict[str, Any]) -> StepOutcome:
        raise AssertionError(arguments)


async def test_a_result_stays_when_the_arguments_of_the_next_call_cannot_be_checked(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    model = ScriptedModel([calls(call("pay"), call("odd"), call("look")), text("done")])
    agent = Agent("agent", model, tools=world.tools(), handlers=[Unchecking()])
    ending = await run.carry_on(agent)
    assert (ending.stop_reason, ending.output) == (StopReason.TEXT_RESPONSE, "done")
    paid, odd, seen = results(journal)
    assert (paid.message.content, seen.message.content) == ("paid 1", "seen")
    assert odd.outcome is ToolOutcome.ERROR
    assert "could not be checked" in odd.message.content


async def test_a_result_stays_when_the_next_tool_returns_an_unknown_control(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    @tool
    async def odd() -> StepOutcome:
        """Return something odd."""
        unchecked: Any = "zzz"
        return StepOutcome("x", unchecked)

    answers = [calls(call("pay"), call("odd")), text("done")]
    ending = await run.carry_on(agent_of(answers, world, more=[odd]))
    assert ending.output == "done"
    paid, failed = results(journal)
    assert paid.message.content == "paid 1"
    assert "unknown control" in failed.message.content


async def test_a_control_may_be_named_by_its_value(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    @tool
    async def charge_card() -> StepOutcome:
        """Go on."""
        named: Any = "continue"
        return StepOutcome("charged", named)

    answers = [calls(call("charge_card")), text("done")]
    ending = await run.carry_on(agent_of(answers, world, more=[charge_card]))
    assert ending.output == "done"
    assert results(journal)[0].message.content == "charged"


class Watching(BehaviorHook):
    """Looks at each call."""

    async def before_tool(self, *_: object, **__: object) -> None:
        """Leave it as it is."""


class Deep(MethodToolHandler):
    """Takes anything."""

    tools = (ToolDefinition(name="deep"),)

    async def do_deep(self, arguments: dict[str, Any]) -> StepOutcome:
        return StepOutcome("deep")


async def test_arguments_may_be_nested_as_deep_as_they_will_also_if_a_hook_looks_at_them() -> None:
    """Some can just be read and no longer be copied; where that is depends on the stack."""
    for depth in range(700, 1000, 3):
        run = MemoryRun(Journal())
        nested = raw_call("deep", f'{{"a": {"[" * depth}{"]" * depth}}}')
        model = ScriptedModel([calls(nested), text("done")])
        agent = Agent("agent", model, handlers=[Deep()], behavior_hooks=[Watching()])
        assert (await run.carry_on(agent)).output == "done"


async def test_the_ids_of_the_calls_of_a_response_are_made_different(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    named = ["a-2", "a", "a", "", ""]
    asked = [ModelToolCall(each, "look", f'{{"n": {n}}}') for n, each in enumerate(named)]
    await run.carry_on(agent_of([calls(*asked), text("done")], world))
    ids = [body.message.tool_call_id for body in results(journal)]
    assert len(set(ids)) == 5
    assert ids[:2] == ["a-2", "a"]
