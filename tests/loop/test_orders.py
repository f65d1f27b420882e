"""The order of what subscribers hear and of what is journaled, in each kind of run."""

import asyncio

import pytest
from tests.loop.agents import World, agent_of, asked
from tests.loop.memory_run import Journal, MemoryRun
from tests.loop.scripted_model import Answer, call, calls, provider_error, text

from runlane.journal.transcript import faults
from runlane.journal.wire.control import ControlInput, ControlInputKind
from runlane.journal.wire.messages import ToolMessage, UserMessage
from runlane.journal.wire.records import KIND_OF, MessageAppended, ToolCompleted, ToolOutcome
from runlane.journal.wire.results import StopReason
from runlane.journal.wire.tree import HistoryImported, SteeringApplied
from runlane.worker import BehaviorDecision, ToolCallContext, ToolControl, ToolEffect, tool

END = ["turn_completed", "agent_finished"]
TURN = ("turn_started", "assistant_thinking_delta", "assistant_text_delta", "message_completed")
ENDS = {
    ToolControl.COMPLETE: StopReason.TOOL_COMPLETION,
    ToolControl.REJECT: StopReason.TOOL_REJECTED,
    ToolControl.CANCEL: StopReason.TOOL_CANCELLED,
}


def said(content: str) -> ControlInput:
    return ControlInput(input_id=content, kind=ControlInputKind.STEERING, content=content)


def results(journal: Journal) -> list[ToolCompleted]:
    return [body for body in journal.bodies if isinstance(body, ToolCompleted)]


def check_answered(journal: Journal) -> None:
    """Every call has one result, which carries the name of its tool and whether it failed."""
    open_calls: list[tuple[str, str]] = []
    for message in journal.project().messages:
        if isinstance(message, ToolMessage):
            assert (message.tool_call_id, message.tool_name) == open_calls.pop(0)
        else:
            assert not open_calls
            tool_calls = getattr(message, "tool_calls", ())
            open_calls = [(each.id, each.name) for each in tool_calls]
    assert not open_calls
    for body in results(journal):
        assert body.message.is_error is (body.outcome is not ToolOutcome.OK)


async def test_a_plain_answer(run: MemoryRun, world: World) -> None:
    await run.carry_on(agent_of([text("good day")], world))
    assert run.trace == ["agent_started", *TURN, "turn_completed", "agent_finished"]


async def test_calls_one_after_the_other(run: MemoryRun, journal: Journal, world: World) -> None:
    answers: list[Answer] = [calls(call("pay"), call("look")), text("done")]
    await run.carry_on(agent_of(answers, world))
    one = ("tool_started", "tool_completed")
    assert run.trace == [
        *("agent_started", *TURN, *one, *one, "turn_completed"),
        *(*TURN, "turn_completed", "agent_finished"),
    ]
    check_answered(journal)


async def test_calls_side_by_side_end_in_source_order_and_others_wait_for_them(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    late = asyncio.Event()

    @tool(effect=ToolEffect.READ_ONLY)
    async def slow(context: ToolCallContext) -> str:
        """Read slowly."""
        await context.progress.report("on it")
        await late.wait()
        return "slow"

    @tool(effect=ToolEffect.READ_ONLY)
    async def quick(context: ToolCallContext) -> str:
        """Read quickly."""
        await context.progress.report("quick")
        late.set()
        return "quick"

    wanted = [call("slow"), call("quick"), call("pay"), call("slow")]
    answers: list[Answer] = [calls(*wanted), text("done")]
    agent = agent_of(answers, world, more=[slow, quick], parallel_tool_calls=True)
    await run.carry_on(agent)
    assert run.trace == [
        *("agent_started", *TURN),
        *("tool_started", "tool_started", "tool_progressed", "tool_progressed"),
        *("tool_completed", "tool_completed"),
        *("tool_started", "tool_completed"),
        *("tool_started", "tool_progressed", "tool_completed", "turn_completed"),
        *(*TURN, "turn_completed", "agent_finished"),
    ]
    assert [body.index for body in results(journal)] == [0, 1, 2, 3]
    check_answered(journal)


@pytest.mark.parametrize("control", ENDS)
async def test_a_tool_that_ends_the_run_leaves_no_call_without_a_result(
    run: MemoryRun, journal: Journal, world: World, control: ToolControl
) -> None:
    wanted = [call("look"), call("end", control=control), call("pay"), call("fly")]
    ending = await run.carry_on(agent_of([calls(*wanted)], world))
    assert ending.stop_reason is ENDS[control]
    assert run.trace == [
        *("agent_started", *TURN),
        *("tool_started", "tool_completed", "tool_started", "tool_progressed"),
        *("tool_completed", "tool_completed", "tool_completed"),
        *("turn_completed", "agent_finished"),
    ]
    assert world.keys("pay") == []
    check_answered(journal)
    outcomes = [body.outcome for body in results(journal)]
    assert outcomes == [ToolOutcome.OK] * 2 + [ToolOutcome.CANCELLED] * 2
    assert "skipped" in results(journal)[2].message.content


async def test_a_call_that_cannot_be_made_is_answered_without_having_started(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    answers: list[Answer] = [calls(call("fly"), call("fail")), text("I see")]
    await run.carry_on(agent_of(answers, world))
    assert run.trace[5:8] == ["tool_completed", "tool_started", "tool_completed"]
    check_answered(journal)


async def test_steering_while_a_tool_runs_is_heard_before_the_next_request(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    @tool
    async def listen() -> str:
        """Somebody speaks meanwhile."""
        run.steering += [said("steer left"), said("steer right")]
        return "heard"

    agent = agent_of([calls(call("listen"), call("pay")), text("done")], world, more=[listen])
    await run.carry_on(agent)
    assert run.trace[-9:-5] == [
        *("turn_completed", "turn_started", "steering_applied", "steering_applied")
    ]
    assert world.keys("pay"), "a call that was asked for is made"
    applied = [body for body in journal.bodies if isinstance(body, SteeringApplied)]
    assert [(body.content, body.target_turn) for body in applied] == [
        *(("steer left", 2), ("steer right", 2))
    ]
    check_answered(journal)


async def test_steering_while_the_answer_comes_makes_it_no_end(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    agent = agent_of([text("done"), text("done again")], world)
    answer = agent.model.stream

    async def stream(*args: object, **kwargs: object):  # type: ignore[no-untyped-def]
        if len(journal.commits) == 1:
            run.steering.append(said("steer on"))
        async for event in answer(*args, **kwargs):  # type: ignore[arg-type]
            yield event

    agent.model.stream = stream  # type: ignore[method-assign]
    ending = await run.carry_on(agent)
    assert ending.output == "done again"
    assert run.trace == [
        *("agent_started", *TURN, "turn_completed"),
        *("turn_started", "steering_applied", *TURN[1:], "turn_completed", "agent_finished"),
    ]
    assert [type(message).__name__ for message in journal.project().messages] == [
        *("UserMessage", "AssistantMessage", "UserMessage", "AssistantMessage")
    ]


async def test_a_steered_run_that_crashed_before_it_asked_again_asks_again(
    journal: Journal, world: World
) -> None:
    """The answer before the steering does not end it."""
    first = MemoryRun(journal)
    await first.begin()
    await first.commit(MessageAppended(run_id="run", attempt=1, turn=1, message=text("done")))
    await first.commit(
        SteeringApplied(run_id="run", input_id="i", content="steer on", target_turn=2)
    )
    second = MemoryRun(journal, attempt=2)
    ending = await second.carry_on(agent_of([text("done"), text("done again")], world))
    assert ending.output == "done again"
    assert second.projection.messages[-2] == UserMessage("steer on")


async def test_an_abort_in_the_model(run: MemoryRun, world: World) -> None:
    run.abort_at_commit = 2
    ending = await run.carry_on(agent_of([calls(call("look")), None], world))
    assert ending.stop_reason is StopReason.EXTERNAL_ABORT
    assert run.trace[-2:] == END


@pytest.mark.parametrize("parallel", [False, True])
async def test_an_abort_in_a_tool_gives_every_call_a_result(
    run: MemoryRun, journal: Journal, world: World, parallel: bool
) -> None:
    @tool(effect=ToolEffect.READ_ONLY)
    async def hang(context: ToolCallContext) -> str:
        """Wait for nothing."""
        context.cancellation.cancel("enough")
        await asyncio.Event().wait()
        return "never"

    wanted = [call("hang"), call("look"), call("pay")]
    agent = agent_of([calls(*wanted)], world, more=[hang], parallel_tool_calls=parallel)
    ending = await run.carry_on(agent)
    assert (ending.stop_reason, ending.error) == (StopReason.EXTERNAL_ABORT, "enough")
    looked = ToolOutcome.OK if parallel else ToolOutcome.CANCELLED
    assert [body.outcome for body in results(journal)] == [
        *(ToolOutcome.CANCELLED, looked, ToolOutcome.CANCELLED)
    ]
    assert run.trace[-5:] == ["tool_completed"] * 3 + END
    assert world.keys("pay") == []
    check_answered(journal)


async def test_a_stop_by_a_hook_comes_after_the_turn(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    class StopAfterFirstTurn:
        async def after_turn(self, snapshot: object, *, cancellation: object) -> BehaviorDecision:
            assert results(journal), "the turn is journaled"
            assert run.trace[-1] == "turn_completed"
            return BehaviorDecision.stop("paused")

    agent = agent_of([calls(call("look"))], world, hooks=[StopAfterFirstTurn()])
    ending = await run.carry_on(agent)
    assert (ending.stop_reason, ending.output) == (StopReason.BEHAVIOR_STOP, "paused")
    assert run.trace[-2:] == ["turn_completed", "agent_finished"]


async def test_the_third_call_that_is_the_same_is_not_made(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    answers: list[Answer] = [
        calls(call("pay", amount=1)),
        calls(call("pay", amount=1), call("pay", amount=1), call("look")),
    ]
    ending = await run.carry_on(agent_of(answers, world))
    assert ending.stop_reason is StopReason.REPEATED_TOOL_CALL
    assert world.keys("pay") == ["run:1:0", "run:2:0"]
    assert world.keys("look") == []
    assert run.trace[-5:] == ["tool_completed"] * 3 + END
    check_answered(journal)


async def test_a_provider_that_fails_ends_the_run_with_its_category(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    ending = await run.carry_on(agent_of([provider_error()], world))
    assert ending.stop_reason is StopReason.PROVIDER_ERROR
    assert [KIND_OF[type(body)] for body in journal.bodies] == ["run_started", "run_finished"]
    assert run.result is not None
    assert (run.result.usage.request_count, run.result.usage.complete) == (1, False)


async def test_a_history_from_elsewhere_is_made_fit_for_the_model(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    """Calls without results and results without calls are not sent; the journal keeps them."""
    dangling = calls(call("look"))
    stray = ToolMessage(tool_call_id="x", tool_name="look", content="?")
    messages = (UserMessage("hello"), dangling, UserMessage("well?"), stray)
    imported = HistoryImported(format="other", document="{}", messages=messages)
    journal.commits.append((imported,))
    run = MemoryRun(journal)
    agent = agent_of([calls(call("look")), text("done")], world)
    await run.carry_on(agent)
    for context in asked(agent):
        assert faults(context.messages) == []
        kinds = [type(message).__name__ for message in context.messages[1:6]]
        assert kinds == [
            *("UserMessage", "AssistantMessage", "ToolMessage", "UserMessage", "UserMessage")
        ]
    assert journal.project().messages[:4] == list(messages)
