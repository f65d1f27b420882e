"""Whatever of an application never answers, the run comes to an end without it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.loop.agents import World
from tests.loop.memory_run import CrashSignal, Journal, MemoryRun, crash_at
from tests.loop.scripted_model import Answer, ScriptedModel, call, calls, text

from runlane.journal.wire.records import ToolCompleted, ToolOutcome
from runlane.journal.wire.results import StopReason
from runlane.worker import (
    Agent,
    RuleBasedToolPolicy,
    RuntimePolicy,
    ToolApprovalDecision,
    ToolApprovalRequest,
    ToolCallContext,
    ToolPolicyAction,
    ToolPolicyMiddleware,
    ToolPolicyRule,
    tool,
)
from runlane.worker.loop.ending import Ending

SOON = RuntimePolicy(tool_timeout_s=0.01, hook_timeout_s=0.01)


async def ended(run: MemoryRun, agent: Agent) -> Ending:
    """Return how a run ends, and fail if it does not."""
    async with asyncio.timeout(20):
        return await run.carry_on(agent)


async def never(*_: object, **__: object) -> Any:
    await asyncio.Event().wait()


@pytest.mark.parametrize("part", ["context_transform", "hint_provider"])
async def test_what_makes_a_request_and_never_returns_ends_the_run(
    run: MemoryRun, part: str
) -> None:
    options: dict[str, Any] = {part: never}
    agent = Agent("agent", ScriptedModel([text("hi")]), runtime_policy=SOON, **options)
    ending = await ended(run, agent)
    assert ending.stop_reason is StopReason.RUNTIME_ERROR
    assert ending.error is not None
    assert part in ending.error
    assert "within 0.01 s" in ending.error


async def test_a_hook_that_never_lets_the_run_end_does_not_keep_it(run: MemoryRun) -> None:
    class Clinging:
        on_run_end = staticmethod(never)

    model = ScriptedModel([text("bye")])
    agent = Agent("agent", model, behavior_hooks=[Clinging()], runtime_policy=SOON)
    assert (await ended(run, agent)).output == "bye"


class Nobody:
    """Never approves, and never refuses."""

    async def approve(self, request: ToolApprovalRequest) -> ToolApprovalDecision:
        await asyncio.Event().wait()
        raise AssertionError(request)


async def test_a_call_that_nobody_approves_is_refused(run: MemoryRun, world: World) -> None:
    rule = ToolPolicyRule(rule_id="ask", action=ToolPolicyAction.REQUIRE_APPROVAL)
    policy = RuleBasedToolPolicy((rule,))
    agent = Agent(
        "agent",
        ScriptedModel([calls(call("pay"))]),
        tools=world.tools(),
        middlewares=[ToolPolicyMiddleware(policy, Nobody(), approval_timeout_s=0.01)],
        runtime_policy=SOON,
    )
    assert (await ended(run, agent)).stop_reason is StopReason.TOOL_REJECTED
    assert world.done == []


async def test_a_lost_call_that_nobody_can_look_up_in_time_is_called_unknown(
    journal: Journal,
) -> None:
    @tool
    async def wire_money(context: ToolCallContext) -> str:
        """Its process dies."""
        first.step = die
        return "wired"

    @wire_money.reconcile
    async def find(context: ToolCallContext) -> str:
        return str(await never())

    def agent(answers: Sequence[Answer]) -> Agent:
        return Agent("agent", ScriptedModel(answers), tools=[wire_money], runtime_policy=SOON)

    assert callable(find)
    answers: list[Answer] = [calls(call("wire_money")), text("well")]
    first, die = MemoryRun(journal), crash_at("anywhere", 1)
    with pytest.raises(CrashSignal):
        await first.carry_on(agent(answers))
    ending = await ended(MemoryRun(journal, attempt=2), agent(answers))
    assert ending.output == "well"
    (lost,) = (body for body in journal.bodies if isinstance(body, ToolCompleted))
    assert lost.outcome is ToolOutcome.UNKNOWN
