"""What calls and hooks have decided holds: in a batch, over a crash, and over a hand-back."""

import asyncio
from typing import Any

import pytest
from tests.loop.agents import World, agent_of
from tests.loop.memory_run import CrashSignal, Journal, MemoryRun, crash_at
from tests.loop.scripted_model import Answer, call, calls, text

from runlane.journal.errors import WriteRefusedError
from runlane.journal.wire.messages import AssistantMessage
from runlane.journal.wire.records import ToolCompleted, ToolOutcome
from runlane.journal.wire.results import StopReason
from runlane.journal.wire.tree import SteeringApplied
from runlane.worker import (
    Agent,
    BehaviorAction,
    BehaviorDecision,
    BehaviorHook,
    BudgetLimits,
    StepOutcome,
    ToolCallContext,
    ToolEffect,
    ToolMiddleware,
    TurnSnapshot,
    tool,
)
from runlane.worker.loop.session import HandBackSignal
from runlane.worker.tools import ToolNext


def results(journal: Journal) -> list[ToolCompleted]:
    return [body for body in journal.bodies if isinstance(body, ToolCompleted)]


def steering(journal: Journal) -> list[str]:
    return [body.content for body in journal.bodies if isinstance(body, SteeringApplied)]


class Saying(BehaviorHook):
    """Decides one thing at one moment; of one turn only, if it is told which."""

    def __init__(self, moment: str, decision: BehaviorDecision, *, turn: int | None = None) -> None:
        self._turn = turn
        self._decision = decision
        setattr(self, moment, self._decide)

    async def _decide(
        self, snapshot: TurnSnapshot, *_: object, **__: object
    ) -> BehaviorDecision | None:
        return self._decision if self._turn in (None, snapshot.turn) else None


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


@pytest.mark.parametrize("stop", [False, True])
async def test_a_stop_beats_steering_and_all_steering_of_a_batch_is_said(
    run: MemoryRun, world: World, journal: Journal, stop: bool
) -> None:
    class Speaking:
        async def after_tool(
            self, snapshot: Any, call: Any, result: Any, *, cancellation: Any
        ) -> BehaviorDecision:
            if stop and call.operation_key.endswith(":1"):
                return BehaviorDecision.stop("stopped")
            return BehaviorDecision.steer_with(f"steer {call.operation_key}")

    answers: list[Answer] = [calls(call("look"), call("look")), text("done")]
    agent = agent_of(answers, world, hooks=[Speaking()], parallel_tool_calls=True)
    ending = await run.carry_on(agent)
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

    answers = [calls(call("late"), call("pay"))]
    agent = agent_of(answers, world, more=[late], budget=BudgetLimits(max_wall_s=10))
    ending = await run.carry_on(agent)
    assert ending.stop_reason is StopReason.DEADLINE_EXCEEDED
    assert world.done == []


@pytest.mark.parametrize(
    "policy",
    [
        {"max_repeated_tool_calls": 1},
        {"budget": BudgetLimits(max_tool_calls=1)},
        {"budget": BudgetLimits(max_wall_s=10)},
    ],
)
async def test_a_call_that_began_under_another_policy_is_unknown_and_not_refused(
    world: World, journal: Journal, policy: dict[str, Any]
) -> None:
    """Nobody is told that it was not made: it was."""
    answers: list[Answer] = [calls(call("look"), call("pay")), text("done")]
    world.step = crash_at("after an effect", 2)
    with pytest.raises(CrashSignal):
        await MemoryRun(journal, step=world.step).carry_on(agent_of(answers, world))
    world.step = lambda _: None
    run = MemoryRun(journal, attempt=2, elapsed_s=100)
    await run.carry_on(agent_of(answers, world, **policy))
    outcomes = [each.outcome for each in results(journal)]
    assert outcomes == [ToolOutcome.OK, ToolOutcome.UNKNOWN]
    assert len(world.keys("pay")) == 1


async def hand_back(run: MemoryRun, agent: Agent, *, after_turn: int) -> None:
    """Go on to the boundary behind a turn (0: before the first), and give the run back there."""

    async def reach() -> None:
        assert run.projection.open_run is not None
        if run.projection.open_run.turn >= after_turn:
            raise HandBackSignal

    run.reach_turn_boundary = reach  # type: ignore[method-assign]
    with pytest.raises(HandBackSignal):
        await run.carry_on(agent)


@pytest.mark.parametrize(("moment", "turn"), [("on_run_start", 0), ("after_turn", 1)])
async def test_what_a_hook_says_is_said_once_however_often_the_run_is_handed_back(
    world: World, journal: Journal, moment: str, turn: int
) -> None:
    hook = Saying(moment, BehaviorDecision.steer_with("steer once"), turn=turn)
    agent = agent_of([calls(call("look")), text("done")], world, hooks=[hook])
    for attempt in (1, 2):
        await hand_back(MemoryRun(journal, attempt), agent, after_turn=turn)
    await MemoryRun(journal, attempt=3).carry_on(agent)
    assert steering(journal) == ["steer once"]


@pytest.mark.parametrize("where", ["in the tool", "after call_next"])
async def test_what_is_counted_after_a_call_began_goes_on_over_turns_and_crashes(
    world: World, journal: Journal, where: str
) -> None:
    counts: dict[str, int] = {}

    @tool(effect=ToolEffect.IDEMPOTENT)
    async def act(n: int, context: ToolCallContext) -> str:
        """Count from inside."""
        if where == "in the tool":
            counts[context.operation_key] = context.count("acts")
        return str(n)

    class Counting(ToolMiddleware):
        async def __call__(self, context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
            outcome = await call_next(context)
            if where == "after call_next":
                counts[context.operation_key] = context.count("acts")
            return outcome

    answers: list[Answer] = [*(calls(call("act", n=n)) for n in range(4)), text("done")]
    agent = agent_of(answers, world, more=[act], middlewares=[Counting()])
    with pytest.raises(CrashSignal):
        await MemoryRun(journal, step=crash_at("after a commit", 6)).carry_on(agent)
    await MemoryRun(journal, attempt=2).carry_on(agent)
    assert counts == {f"run:{n}:0": n for n in range(1, 5)}


@pytest.mark.parametrize("handed_back", [False, True])
async def test_a_run_that_is_stopped_before_a_request_has_its_last_words_as_output(
    world: World, journal: Journal, handed_back: bool
) -> None:
    """Also if all that a worker reads of them is a checkpoint."""
    hook = Saying("before_model", BehaviorDecision.stop(), turn=2)
    agent = agent_of([AssistantMessage("thinking", (call("look"),))], world, hooks=[hook])
    run = MemoryRun(journal)
    if handed_back:
        await hand_back(run, agent, after_turn=1)
        checkpoint = run.projection.checkpoint()
        assert checkpoint is not None
        run = MemoryRun(Journal([(checkpoint,)]), attempt=2)
    ending = await run.carry_on(agent)
    assert (ending.stop_reason, ending.output) == (StopReason.BEHAVIOR_STOP, "thinking")


@pytest.mark.parametrize("answer", [text("done"), calls(call("look"))])
async def test_a_hook_that_stops_a_run_after_a_response_may_also_say_something(
    run: MemoryRun, world: World, journal: Journal, answer: AssistantMessage
) -> None:
    """The next run of the session reads it."""
    decision = BehaviorDecision(action=BehaviorAction.STOP, steer=("steer next",))
    ending = await run.carry_on(agent_of([answer], world, hooks=[Saying("after_model", decision)]))
    assert ending.stop_reason is StopReason.BEHAVIOR_STOP
    assert steering(journal) == ["steer next"]


async def test_a_result_that_is_denied_does_not_complete_the_run(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    hook = Saying("after_tool", BehaviorDecision.deny("it leaks a secret"))
    answers: list[Answer] = [calls(call("end", control="complete")), text("done")]
    ending = await run.carry_on(agent_of(answers, world, hooks=[hook]))
    assert (ending.stop_reason, ending.output) == (StopReason.TEXT_RESPONSE, "done")
    (denied,) = results(journal)
    assert denied.outcome is ToolOutcome.ERROR
    assert denied.message.content.startswith("error: it leaks a secret\n")
