"""What an application gives may be odd: nothing is lost by it, and the journal stays readable."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.loop.agents import World, agent_of
from tests.loop.memory_run import CrashSignal, Journal, MemoryRun, crash_at
from tests.loop.scripted_model import Answer, call, calls, text

from runlane.journal.errors import WriteRefusedError
from runlane.journal.wire.codec import decode_body, encode_body
from runlane.journal.wire.messages import AssistantMessage, ModelToolCall, ModelUsage
from runlane.journal.wire.records import ToolCompleted, ToolOutcome
from runlane.journal.wire.results import StopReason
from runlane.journal.wire.tree import SteeringApplied
from runlane.worker import (
    Agent,
    BehaviorDecision,
    BudgetLimits,
    CancellationToken,
    ModelAdapter,
    ModelContext,
    ModelResponseCompleted,
    StepOutcome,
    ToolCallContext,
    ToolEffect,
    tool,
)
from runlane.worker.loop.session import HandBackSignal
from runlane.worker.models import ModelStreamEvent


def results(journal: Journal) -> list[ToolCompleted]:
    return [body for body in journal.bodies if isinstance(body, ToolCompleted)]


def steering(journal: Journal) -> list[str]:
    return [body.content for body in journal.bodies if isinstance(body, SteeringApplied)]


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
async def test_tokens_that_are_no_count_are_unknown(run: MemoryRun, tokens: Any) -> None:

    await run.carry_on(Agent("agent", Reporting(ModelUsage(tokens, 1))))
    assert run.result is not None
    assert not run.result.usage.complete


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


async def test_a_result_stays_whatever_is_raised_after_it(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    class Checking:
        async def before_tool(self, snapshot: Any, call: Any, *, cancellation: Any) -> None:
            if call.tool_name == "look":
                raise ValueError("broken")

    asked = [call("pay"), call("look"), call("pay", amount=2)]
    ending = await run.carry_on(agent_of([calls(*asked)], world, hooks=[Checking()]))
    assert ending.stop_reason is StopReason.RUNTIME_ERROR
    assert [body.outcome for body in results(journal)] == [
        *(ToolOutcome.OK, ToolOutcome.ERROR, ToolOutcome.CANCELLED)
    ]


async def test_an_unknown_control_is_an_error_that_the_model_reads(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    @tool
    async def odd() -> StepOutcome:
        """Return something odd."""
        unchecked: Any = "zzz"
        return StepOutcome("x", unchecked)

    ending = await run.carry_on(agent_of([calls(call("odd")), text("done")], world, more=[odd]))
    assert ending.output == "done"
    assert "unknown control" in results(journal)[0].message.content


async def test_a_call_that_ends_the_run_stays_with_its_batch_over_a_crash(
    world: World, journal: Journal
) -> None:
    """The model is not asked again as if nothing had been decided."""
    gate = asyncio.Event()

    @tool(effect=ToolEffect.READ_ONLY)
    async def slow() -> str:
        """Wait."""
        await gate.wait()
        return "slow"

    answers: list[Answer] = [calls(call("end", control="complete"), call("slow")), text("again")]
    agent = agent_of(answers, world, more=[slow], parallel_tool_calls=True)
    task = asyncio.create_task(MemoryRun(journal).carry_on(agent))
    async with asyncio.timeout(20):
        while not world.keys("end"):  # noqa: ASYNC110 (a few steps away)
            await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert results(journal) == []
    gate.set()
    ending = await MemoryRun(journal, attempt=2).carry_on(agent)
    assert ending.stop_reason is StopReason.TOOL_COMPLETION


async def test_a_stop_beats_steering_and_all_steering_of_a_batch_is_said(
    journal: Journal, world: World
) -> None:
    class Speaking:
        def __init__(self, *, stop: bool) -> None:
            self._stop = stop

        async def after_tool(
            self, snapshot: Any, call: Any, result: Any, *, cancellation: Any
        ) -> BehaviorDecision:
            if self._stop and call.operation_key.endswith(":1"):
                return BehaviorDecision.stop("stopped")
            return BehaviorDecision.steer_with(f"steer {call.operation_key}")

    asked = [call("look"), call("look")]
    for stop in (False, True):
        journal = Journal()
        agent = agent_of(
            [calls(*asked), text("done")],
            World(journal),
            hooks=[Speaking(stop=stop)],
            parallel_tool_calls=True,
        )
        ending = await MemoryRun(journal).carry_on(agent)
        assert ending.output == ("stopped" if stop else "done")
        assert steering(journal) == ["steer run:1:0", "steer run:1:1"][: 2 - stop]


async def test_no_call_of_a_batch_begins_after_its_intent_was_refused(
    run: MemoryRun, world: World
) -> None:
    @tool(effect=ToolEffect.READ_ONLY)
    async def read(n: int) -> int:
        """Read."""
        world.done.append(("read", str(n)))
        return n

    asked = calls(*(call("read", n=n) for n in range(3)))
    agent = agent_of([asked, text("done")], world, more=[read], parallel_tool_calls=True)
    await agent.startup()
    await run.begin()
    run.lease_lost = True
    with pytest.raises(WriteRefusedError):
        await run.go_on(agent)
    assert world.done == []


async def test_no_call_begins_once_the_time_of_the_run_is_over(
    run: MemoryRun, world: World
) -> None:

    @tool
    async def late() -> str:
        """Take long."""
        run.elapsed_s = 100.0
        return "late"

    agent = agent_of(
        [calls(call("late"), call("pay"))], world, more=[late], budget=BudgetLimits(max_wall_s=10)
    )
    ending = await run.carry_on(agent)
    assert ending.stop_reason is StopReason.DEADLINE_EXCEEDED
    assert world.done == []


@pytest.mark.parametrize("moment", ["on_run_start", "after_turn"])
async def test_what_a_hook_says_is_said_once_however_often_the_run_is_handed_back(
    world: World, journal: Journal, moment: str
) -> None:
    class Speaking:
        pass

    async def speak(self: object, snapshot: Any, *, cancellation: Any) -> BehaviorDecision | None:
        return BehaviorDecision.steer_with("steer once") if snapshot.turn < 2 else None

    setattr(Speaking, moment, speak)
    answers: list[Answer] = [calls(call("look")), text("done")]
    agent = agent_of(answers, world, hooks=[Speaking()])
    await agent.startup()
    for attempt in (1, 2, 3):
        run = MemoryRun(journal, attempt)
        await run.begin()
        if attempt < 3:
            run.draining = moment == "on_run_start" or bool(results(journal))
            with pytest.raises(HandBackSignal):
                await _until_turn(run, agent)
        else:
            await run.finish(await run.go_on(agent))
    assert steering(journal) == ["steer once"]


async def _until_turn(run: MemoryRun, agent: Agent) -> None:
    """Go on to the next boundary between turns at which something is journaled."""
    boundary = run.reach_turn_boundary

    async def reach() -> None:
        await boundary()
        if run.projection.open_run is not None and run.projection.open_run.turn:
            raise HandBackSignal

    run.reach_turn_boundary = reach  # type: ignore[method-assign]
    await run.go_on(agent)


async def test_what_is_counted_after_a_call_began_is_journaled_too(
    world: World, journal: Journal
) -> None:
    counts: list[int] = []

    @tool(effect=ToolEffect.IDEMPOTENT)
    async def counting(n: int, context: ToolCallContext) -> str:
        """Count from inside."""
        counts.append(context.count("inside"))
        return str(n)

    answers: list[Answer] = [*(calls(call("counting", n=n)) for n in range(4)), text("done")]
    for attempt, cut in enumerate((6, 10**6), 1):
        run = MemoryRun(journal, attempt, step=crash_at("after a commit", cut))
        try:
            await run.carry_on(agent_of(answers, world, more=[counting]))
        except CrashSignal:
            continue
    assert sorted(set(counts)) == [1, 2, 3, 4]


async def test_the_ids_of_the_calls_of_a_response_are_made_different(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    named = ["a-2", "a", "a", "", ""]
    asked = [ModelToolCall(each, "look", f'{{"n": {n}}}') for n, each in enumerate(named)]
    await run.carry_on(agent_of([calls(*asked), text("done")], world))
    ids = [body.message.tool_call_id for body in results(journal)]
    assert len(set(ids)) == 5
    assert ids[:2] == ["a-2", "a"]
