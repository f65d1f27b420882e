"""What hooks, transforms and hints can do to a run, and what is journaled of it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.loop.agents import World, agent_of, asked
from tests.loop.memory_run import CrashSignal, Journal, MemoryRun, crash_at
from tests.loop.scripted_model import Answer, call, calls, provider_error, text

from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.records import ToolCompleted, ToolOutcome, ToolStarted
from runlane.journal.wire.results import AgentRunResult, StopReason
from runlane.worker import BehaviorDecision, BehaviorHook, ToolResult, TurnSnapshot


def results(journal: Journal) -> list[ToolCompleted]:
    return [body for body in journal.bodies if isinstance(body, ToolCompleted)]


class Diary(BehaviorHook):
    """Notes each moment, and decides what it is told to there."""

    def __init__(self, **decisions: BehaviorDecision) -> None:
        self.moments: list[str] = []
        self.decisions = decisions
        self.snapshots: list[TurnSnapshot] = []
        self.result: AgentRunResult | None = None

    def _at(self, moment: str, snapshot: TurnSnapshot) -> BehaviorDecision | None:
        self.moments.append(moment)
        self.snapshots.append(snapshot)
        return self.decisions.pop(moment, None)

    async def on_run_start(self, snapshot: TurnSnapshot, **_: Any) -> BehaviorDecision | None:
        return self._at("on_run_start", snapshot)

    async def before_model(
        self, snapshot: TurnSnapshot, messages: object, **_: Any
    ) -> BehaviorDecision | None:
        return self._at("before_model", snapshot)

    async def after_model(self, snapshot: TurnSnapshot, **_: Any) -> BehaviorDecision | None:
        return self._at("after_model", snapshot)

    async def before_tool(
        self, snapshot: TurnSnapshot, call: object, **_: Any
    ) -> BehaviorDecision | None:
        return self._at("before_tool", snapshot)

    async def after_tool(
        self, snapshot: TurnSnapshot, call: object, result: ToolResult, **_: Any
    ) -> BehaviorDecision | None:
        return self._at("after_tool", snapshot)

    async def after_failed_tool(
        self, snapshot: TurnSnapshot, call: object, result: ToolResult, **_: Any
    ) -> BehaviorDecision | None:
        return self._at("after_failed_tool", snapshot)

    async def after_turn(self, snapshot: TurnSnapshot, **_: Any) -> BehaviorDecision | None:
        return self._at("after_turn", snapshot)

    async def on_run_end(
        self, snapshot: TurnSnapshot, result: AgentRunResult, **_: Any
    ) -> BehaviorDecision | None:
        self.result = result
        return self._at("on_run_end", snapshot)


def turn(*each: Any) -> list[Answer]:
    return [calls(*each), text("done")]


async def test_the_moments_of_a_run_in_order(run: MemoryRun, world: World) -> None:
    diary = Diary()
    await run.carry_on(agent_of(turn(call("look"), call("fail")), world, hooks=[diary]))
    assert diary.moments == [
        *("on_run_start", "before_model", "after_model", "before_tool", "after_tool"),
        *("before_tool", "after_failed_tool", "after_turn", "before_model", "after_model"),
        "on_run_end",
    ]
    assert diary.result == run.result
    assert {each.task for each in diary.snapshots} == {"do it"}
    assert [each.turn for each in diary.snapshots][:3] == [0, 1, 1]


async def test_a_denied_call_is_not_made_and_the_model_reads_why(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    diary = Diary(before_tool=BehaviorDecision.deny("not today"))
    await run.carry_on(agent_of(turn(call("pay"), call("look")), world, hooks=[diary]))
    assert [name for name, _ in world.done] == ["look"]
    assert "tool blocked: not today" in results(journal)[0].message.content
    assert results(journal)[0].message.is_error


@pytest.mark.parametrize("cut", [10**6, 4, 5])
async def test_replaced_arguments_are_journaled_with_the_intent(
    world: World, journal: Journal, cut: int
) -> None:
    """A crash after it does not ask the hook again: the call is the same one."""
    hook = Diary(before_tool=BehaviorDecision.replace_arguments({"amount": 7}))
    run = MemoryRun(journal, step=crash_at("before a commit", cut))
    try:
        await run.carry_on(agent_of(turn(call("pay", amount=1)), world, hooks=[hook]))
    except CrashSignal:
        run = MemoryRun(journal, attempt=2)
        await run.carry_on(agent_of(turn(call("pay", amount=1)), world))
    (intent,) = [body for body in journal.bodies if isinstance(body, ToolStarted)]
    assert intent.arguments == '{"amount": 7}'
    assert len(world.done) == 1


async def test_replaced_arguments_that_do_not_fit_are_not_used(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    hook = Diary(before_tool=BehaviorDecision.replace_arguments({"amount": "much"}))
    await run.carry_on(agent_of(turn(call("pay")), world, hooks=[hook]))
    assert world.done == []
    assert "invalid_tool_arguments" in results(journal)[0].message.content


async def test_an_output_gets_a_prefix_and_can_be_called_an_error(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    decision = BehaviorDecision(prefix="Mind this:", denied=True)
    hook = Diary(after_tool=decision)
    await run.carry_on(agent_of(turn(call("look")), world, hooks=[hook]))
    (result,) = results(journal)
    assert result.message.content == "error: denied\nMind this:\nseen"
    assert (result.message.is_error, result.outcome) == (True, ToolOutcome.ERROR)


@pytest.mark.parametrize(
    "moment", ["on_run_start", "before_model", "after_model", "before_tool", "after_tool"]
)
async def test_a_stop_ends_the_run_at_once_and_answers_every_call(
    run: MemoryRun, world: World, journal: Journal, moment: str
) -> None:
    hook = Diary(**{moment: BehaviorDecision.stop("that will do")})
    ending = await run.carry_on(agent_of(turn(call("pay"), call("look")), world, hooks=[hook]))
    assert (ending.stop_reason, ending.output) == (StopReason.BEHAVIOR_STOP, "that will do")
    assert len(results(journal)) == (2 if moment not in ("on_run_start", "before_model") else 0)
    assert world.keys("look") == []
    assert len(world.keys("pay")) == (moment == "after_tool")


@pytest.mark.parametrize(
    "moment", ["after_model", "before_tool", "after_tool", "after_failed_tool"]
)
async def test_steering_skips_the_calls_that_are_left_and_is_heard_next(
    run: MemoryRun, world: World, journal: Journal, moment: str
) -> None:
    first = "fail" if moment == "after_failed_tool" else "look"
    hook = Diary(**{moment: BehaviorDecision.steer_with("steer left", "steer more")})
    agent = agent_of(turn(call(first), call("pay")), world, hooks=[hook])
    ending = await run.carry_on(agent)
    assert ending.output == "done"
    assert world.keys("pay") == []
    assert len(results(journal)) == 2
    assert asked(agent)[1].messages[-2:] == (UserMessage("steer left"), UserMessage("steer more"))


@pytest.mark.parametrize("moment", ["after_model", "after_turn", "on_run_start"])
async def test_steering_after_an_answer_makes_it_no_end(
    run: MemoryRun, world: World, moment: str
) -> None:
    hook = Diary(**{moment: BehaviorDecision.steer_with("steer on")})
    answers: list[Answer] = [calls(call("look")), text("done"), text("done again")]
    if moment == "after_model":
        answers = answers[1:]
    agent = agent_of(answers, world, hooks=[hook])
    ending = await run.carry_on(agent)
    assert ending.stop_reason is StopReason.TEXT_RESPONSE
    assert UserMessage("steer on") in asked(agent)[-1].messages


async def test_what_a_hook_lets_the_model_read_is_not_journaled(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    instead: list[ContextMessage] = [
        UserMessage("something else"),
        ToolMessage("lost", "look", "no call of this"),
    ]
    hook = Diary(before_model=BehaviorDecision.replace_messages(instead))
    agent = agent_of([text("done")], world, hooks=[hook])
    await run.carry_on(agent)
    (request,) = asked(agent)
    assert request.messages == (SystemMessage("You are a test."), UserMessage("something else"))
    assert journal.project().messages[0] == UserMessage("do it")


@pytest.mark.parametrize(
    "moment",
    [
        *("on_run_start", "before_model", "after_model", "before_tool", "after_tool", "after_turn"),
    ],
)
async def test_a_hook_that_fails_ends_the_run_and_no_call_is_left_without_a_result(
    run: MemoryRun, world: World, journal: Journal, moment: str
) -> None:
    class Failing:
        pass

    async def fail(self: object, *_: object, **__: object) -> None:
        raise ValueError("broken")

    setattr(Failing, moment, fail)
    ending = await run.carry_on(agent_of(turn(call("pay"), call("look")), world, hooks=[Failing()]))
    assert ending.stop_reason is StopReason.RUNTIME_ERROR
    assert ending.error is not None
    assert moment in ending.error
    messages = journal.project().messages
    wanted = [
        each.id
        for message in messages
        if isinstance(message, AssistantMessage)
        for each in message.tool_calls
    ]
    assert [each.tool_call_id for each in messages if isinstance(each, ToolMessage)] == wanted
    if moment == "after_tool":
        assert results(journal)[0].message.content == "paid 1"


async def test_a_hook_sees_the_end_of_a_run_that_failed(run: MemoryRun, world: World) -> None:
    diary = Diary()
    await run.carry_on(agent_of([provider_error()], world, hooks=[diary]))
    assert diary.result is not None
    assert diary.result.stop_reason is StopReason.PROVIDER_ERROR


async def test_an_abort_interrupts_a_hook(run: MemoryRun, world: World) -> None:
    class Slow:
        async def before_model(self, *_: object, cancellation: Any) -> None:
            cancellation.cancel("enough")
            await cancellation.wait()
            await asyncio.Event().wait()

    ending = await run.carry_on(agent_of([text("hi")], world, hooks=[Slow()]))
    assert (ending.stop_reason, ending.error) == (StopReason.EXTERNAL_ABORT, "enough")


def last_two(messages: tuple[ContextMessage, ...]) -> Sequence[ContextMessage]:
    return messages[-2:]


async def last(messages: tuple[ContextMessage, ...]) -> Sequence[ContextMessage]:
    return messages[-1:]


def hint(snapshot: TurnSnapshot) -> str:
    return f"steer {snapshot.turn + 1}"


async def test_a_transform_and_a_hint_are_for_one_request_only(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    agent = agent_of(turn(call("look")), world)
    agent.context_transform = last_two
    agent.hint_provider = hint
    await run.carry_on(agent)
    first, second = asked(agent)
    assert first.messages[1:] == (UserMessage("do it\n\nsteer 1"),)
    assert [type(message).__name__ for message in second.messages[1:]] == [
        *("AssistantMessage", "ToolMessage", "UserMessage")
    ]
    assert second.messages[-1] == UserMessage("steer 2")
    assert len(journal.project().messages) == 4
    assert journal.project().messages[0] == UserMessage("do it")


async def test_a_transform_that_cuts_a_call_from_its_result_sends_neither_alone(
    run: MemoryRun, world: World
) -> None:
    agent = agent_of(turn(call("look")), world)
    agent.context_transform = last
    await run.carry_on(agent)
    assert asked(agent)[1].messages == (SystemMessage("You are a test."),)


@pytest.mark.parametrize("moment", ["after_model", "before_tool", "after_tool"])
async def test_an_abort_while_a_hook_is_asked_leaves_no_call_without_its_result(
    run: MemoryRun, world: World, journal: Journal, moment: str
) -> None:
    class Slow:
        pass

    async def wait(self: object, *_: object, cancellation: Any) -> None:
        cancellation.cancel("enough")
        await asyncio.Event().wait()

    setattr(Slow, moment, wait)
    ending = await run.carry_on(agent_of(turn(call("pay"), call("look")), world, hooks=[Slow()]))
    assert (ending.stop_reason, ending.error) == (StopReason.EXTERNAL_ABORT, "enough")
    paid = moment == "after_tool"
    assert [each.outcome is ToolOutcome.OK for each in results(journal)] == [paid, False]
    assert len(world.keys("pay")) == paid
