"""Nothing that an application adds can hold a run for ever, or mix two runs up."""

import asyncio
from typing import Any

import pytest
from tests.loop.agents import World, agent_of
from tests.loop.memory_run import Journal, MemoryRun
from tests.loop.scripted_model import Answer, call, calls, text

from runlane.journal.wire.records import ToolCompleted, ToolOutcome
from runlane.journal.wire.results import StopReason
from runlane.worker import (
    BudgetLimits,
    RuleBasedToolPolicy,
    RuntimePolicy,
    StepOutcome,
    ToolCallContext,
    ToolMiddleware,
    ToolNext,
    ToolPolicyAction,
    ToolPolicyMiddleware,
    ToolPolicyRule,
    TurnSnapshot,
    tool,
)


def results(journal: Journal) -> list[ToolCompleted]:
    return [body for body in journal.bodies if isinstance(body, ToolCompleted)]


def test_without_any_limit_of_its_own_everything_has_one() -> None:
    policy = RuntimePolicy()
    assert None not in (policy.model_timeout_s, policy.tool_timeout_s, policy.hook_timeout_s)


async def test_a_tool_that_hangs_is_left_and_the_run_goes_on(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    @tool
    async def hang() -> str:
        """Wait for nothing."""
        await asyncio.Event().wait()
        return "never"

    agent = agent_of([calls(call("hang")), text("well")], world, more=[hang], tool_timeout_s=0.01)
    assert (await run.carry_on(agent)).output == "well"
    (left,) = results(journal)
    assert "no result within 0.01 s" in left.message.content


async def test_a_tool_may_take_no_longer_than_its_run_has_left(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    @tool(timeout_s=1000)
    async def hang() -> str:
        """Wait for nothing."""
        run.elapsed_s = 60.0
        await asyncio.Event().wait()
        return "never"

    run.elapsed_s = 59.99
    budget = BudgetLimits(max_wall_s=60)
    agent = agent_of([calls(call("hang")), text("well")], world, more=[hang], budget=budget)
    ending = await run.carry_on(agent)
    assert ending.stop_reason is StopReason.DEADLINE_EXCEEDED
    assert results(journal)[0].outcome is ToolOutcome.ERROR


@pytest.mark.parametrize("moment", ["before_model", "after_turn"])
async def test_a_hook_that_hangs_ends_the_run(run: MemoryRun, world: World, moment: str) -> None:
    class Hanging:
        pass

    async def hang(self: object, *_: object, **__: object) -> None:
        await asyncio.Event().wait()

    setattr(Hanging, moment, hang)
    answers: list[Answer] = [calls(call("look")), text("well")]
    ending = await run.carry_on(agent_of(answers, world, hooks=[Hanging()], hook_timeout_s=0.01))
    assert ending.stop_reason is StopReason.RUNTIME_ERROR
    assert ending.error is not None
    assert "no result within 0.01 s" in ending.error


class Swallowing(ToolMiddleware):
    """Lets nothing through to its caller, and tries again."""

    async def __call__(self, context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        for _ in range(3):
            try:
                return await call_next(context)
            except BaseException:
                continue
        return StepOutcome("all is well")


async def test_a_middleware_that_swallows_everything_does_not_stop_a_cancellation(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    @tool
    async def hang(context: ToolCallContext) -> str:
        """Wait for the abort."""
        world.act("hang", context)
        context.cancellation.cancel("enough")
        await asyncio.Event().wait()
        return "never"

    agent = agent_of(
        [calls(call("hang"), call("pay")), text("well")],
        world,
        more=[hang],
        middlewares=[Swallowing()],
    )
    ending = await run.carry_on(agent)
    assert (ending.stop_reason, ending.error) == (StopReason.EXTERNAL_ABORT, "enough")
    assert world.keys("hang") == ["run:1:0"]
    assert world.keys("pay") == []
    assert len(results(journal)) == 2


async def test_two_runs_that_share_a_policy_count_for_themselves(world: World) -> None:
    rule = ToolPolicyRule(rule_id="once", action=ToolPolicyAction.ALLOW, max_calls_per_run=1)
    middleware = ToolPolicyMiddleware(RuleBasedToolPolicy((rule,)))
    for _ in range(2):
        journal = Journal()
        world = World(journal)
        answers: list[Answer] = [calls(call("look")), calls(call("pay"))]
        run = MemoryRun(journal)
        ending = await run.carry_on(agent_of(answers, world, middlewares=[middleware]))
        assert ending.stop_reason is StopReason.TOOL_REJECTED
        assert [name for name, _ in world.done] == ["look"]


async def test_what_a_worker_remembers_of_a_run_is_what_is_journaled(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    """Also where the run ends in the middle of a batch."""
    asked = [call("look"), call("look", odd=1), *[call("look")] * 3, call("pay")]
    for parallel in (False, True):
        journal = Journal()
        run = MemoryRun(journal)
        agent = agent_of([calls(*asked)], World(journal), parallel_tool_calls=parallel)
        ending = await run.carry_on(agent)
        assert ending.stop_reason is StopReason.REPEATED_TOOL_CALL
        assert run.projection.messages == journal.project().messages
        assert len(results(journal)) == len(asked)


async def test_a_hook_after_the_model_reads_the_text_of_its_answer(
    run: MemoryRun, world: World
) -> None:
    read: list[Any] = []

    class Reading:
        async def after_model(self, snapshot: TurnSnapshot, *, cancellation: object) -> None:
            assert snapshot.response is not None
            read.append(snapshot.response.content)

    await run.carry_on(agent_of([text("a whole answer")], world, hooks=[Reading()]))
    assert read == ["a whole answer"]
