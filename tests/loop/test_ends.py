"""Whatever ends a run, what it leaves behind is whole: each call answered, each turn closed."""

import asyncio
from typing import Any

import pytest
from tests.loop.agents import World, agent_of, asked
from tests.loop.memory_run import CrashSignal, Journal, MemoryRun, crash_at
from tests.loop.scripted_model import Answer, call, calls, provider_error, text

from runlane.journal.transcript import faults
from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import (
    KIND_OF,
    MessageAppended,
    RunFinished,
    ToolCompleted,
    ToolStarted,
)
from runlane.journal.wire.results import AgentRunResult, RunStatus, StopReason
from runlane.worker import (
    BehaviorDecision,
    BudgetLimits,
    RecoveryPolicy,
    ToolCallContext,
    ToolEffect,
    tool,
)

LAST = [call("look"), call("pay"), call("fly")]
"""What stands behind the call that ends the run."""


@tool(effect=ToolEffect.READ_ONLY)
async def quit_it(context: ToolCallContext) -> str:
    """Somebody aborts the run while this is at work."""
    context.cancellation.cancel("enough")
    await asyncio.Event().wait()
    return "never"


class At:
    """Decides, or fails, at one moment of the first run."""

    def __init__(self, moment: str, decision: BehaviorDecision | None) -> None:
        async def decide(snapshot: Any, *_: object, **__: object) -> BehaviorDecision | None:
            if snapshot.run_id != "run":
                return None
            if decision is None:
                raise ValueError("no idea")
            return decision

        setattr(self, moment, decide)


def stopped(moment: str) -> dict[str, Any]:
    return {"hooks": [At(moment, BehaviorDecision.stop("paused"))]}


def failed(moment: str) -> dict[str, Any]:
    return {"hooks": [At(moment, None)]}


ENDS: dict[str, tuple[list[Answer], dict[str, Any], StopReason]] = {
    "completes": (
        [calls(call("look"), call("end", control="complete"), *LAST)],
        {},
        StopReason.TOOL_COMPLETION,
    ),
    "rejects": ([calls(call("end", control="reject"), *LAST)], {}, StopReason.TOOL_REJECTED),
    "cancels": ([calls(call("end", control="cancel"), *LAST)], {}, StopReason.TOOL_CANCELLED),
    "repeats": ([calls(*[call("look")] * 4, *LAST)], {}, StopReason.REPEATED_TOOL_CALL),
    "calls": (
        [calls(call("look"), *LAST)],
        {"budget": BudgetLimits(max_tool_calls=2)},
        StopReason.BUDGET_EXCEEDED,
    ),
    "tokens": ([calls(*LAST)], {"max_run_tokens": 11}, StopReason.TOKEN_BUDGET_EXCEEDED),
    "steps": ([calls(*LAST)], {"max_steps": 1}, StopReason.MAX_STEPS),
    "abort": ([calls(call("look"), call("quit_it"), *LAST)], {}, StopReason.EXTERNAL_ABORT),
    "provider": ([calls(*LAST), provider_error()], {}, StopReason.PROVIDER_ERROR),
    "silence": ([calls(*LAST), None], {"model_timeout_s": 0.01}, StopReason.PROVIDER_TIMEOUT),
    "no answer": ([calls(*LAST), text("")], {}, StopReason.EMPTY_RESPONSE),
    **{
        f"stopped {moment}": ([calls(*LAST)], stopped(moment), StopReason.BEHAVIOR_STOP)
        for moment in ("after_model", "before_tool", "after_tool", "after_turn")
    },
    **{
        f"failed {moment}": ([calls(*LAST)], failed(moment), StopReason.RUNTIME_ERROR)
        for moment in ("before_model", "after_model", "before_tool", "after_tool", "after_turn")
    },
}


def check_whole(run: MemoryRun) -> None:
    """Each call has its record, each turn its end, and the transcript is fit for a model."""
    bodies = run.journal.bodies
    wanted = [b.message.tool_calls for b in bodies if isinstance(b, MessageAppended)]
    given = [body.index for body in bodies if isinstance(body, ToolCompleted)]
    assert given == [index for each in wanted for index, _ in enumerate(each)]
    assert run.trace.count("turn_started") == run.trace.count("turn_completed")
    assert run.trace.count("tool_started") <= run.trace.count("tool_completed")
    assert [kind for kind in run.trace if kind == "agent_finished"] == run.trace[-1:]
    written = run.journal.project()
    assert faults(written.messages) == []
    assert run.projection.messages == written.messages


async def crash(world: World, answers: list[Answer], place: str, times: int) -> None:
    """Carry a run on until its process dies."""
    run = MemoryRun(world.journal, step=crash_at(place, times))
    world.step = run.step
    with pytest.raises(CrashSignal):
        await run.carry_on(agent_of(answers, world))
    world.step = lambda _: None


async def next_run(journal: Journal) -> None:
    """Let the session go on with another task."""
    run = MemoryRun(journal)
    run.run_id = "next"
    agent = agent_of([text("fine")], World(journal))
    before = journal.project().messages
    assert (await run.carry_on(agent)).output == "fine"
    (context,) = asked(agent)
    assert faults(context.messages) == []
    assert list(context.messages[1:-1]) == before, "nothing had to be mended"


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("end", ENDS)
async def test_a_run_leaves_no_call_without_a_result_and_no_turn_open(
    run: MemoryRun, journal: Journal, world: World, end: str, parallel: bool
) -> None:
    answers, options, reason = ENDS[end]
    agent = agent_of(answers, world, more=[quit_it], parallel_tool_calls=parallel, **options)
    assert (await run.carry_on(agent)).stop_reason is reason
    check_whole(run)
    await next_run(journal)


async def test_a_run_that_an_uncertain_outcome_ends_leaves_no_call_without_a_result(
    journal: Journal, world: World
) -> None:
    answers: list[Answer] = [calls(call("look"), call("pay"), call("look"), call("fly"))]
    await crash(world, answers, "after an effect", 2)
    run = MemoryRun(journal, attempt=2)
    agent = agent_of(answers, world, recovery_policy=RecoveryPolicy.FAIL)
    assert (await run.carry_on(agent)).stop_reason is StopReason.RUNTIME_ERROR
    assert run.projection.messages == journal.project().messages
    await next_run(journal)


async def test_a_run_that_ends_without_its_worker_leaves_no_call_without_a_result(
    journal: Journal, world: World
) -> None:
    """Nobody is there to answer its calls."""
    await crash(world, [calls(call("pay"), call("look"))], "after an effect", 1)
    result = AgentRunResult(
        status=RunStatus.FAILED, stop_reason=StopReason.WORKER_LOST, turns=1, output=None
    )
    journal.commits.append((RunFinished(run_id="run", branch_id="main", result=result),))
    await next_run(journal)


@pytest.mark.parametrize("end", ["repeats", "abort"])
async def test_results_that_were_there_before_the_end_are_read_by_the_next_run(
    run: MemoryRun, journal: Journal, world: World, end: str
) -> None:
    answers, options, _ = ENDS[end]
    await run.carry_on(agent_of(answers, world, more=[quit_it], **options))
    told = [m.content for m in journal.project().messages if isinstance(m, ToolMessage)]
    assert told.count("seen") == len(world.keys("look")) > 0


async def test_a_run_over_its_tokens_has_failed_and_all_that_it_cost_stays(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    await run.carry_on(agent_of([calls(call("pay"))], world, max_run_tokens=11))
    assert run.result is not None
    assert (run.result.status, run.result.output) == (RunStatus.FAILED, None)
    assert (run.result.usage.total_tokens, run.result.usage.complete) == (11, True)
    assert [KIND_OF[type(body)] for body in journal.bodies] == [
        *("run_started", "message_appended", "tool_started", "tool_completed", "run_finished")
    ]
    assert run.trace[-5:] == [
        *("message_completed", "tool_started", "tool_completed"),
        *("turn_completed", "agent_finished"),
    ]


async def test_a_call_is_journaled_before_it_is_made_and_names_it_once_and_for_all(
    journal: Journal, world: World
) -> None:
    """What had not begun can be told from what had, and both attempts call it the same."""
    answers: list[Answer] = [calls(call("stamp"), call("stamp")), text("done")]
    await crash(world, answers, "before an effect", 1)
    begun = [body.operation_key for body in journal.bodies if isinstance(body, ToolStarted)]
    assert begun == ["run:1:0"]
    await MemoryRun(journal, attempt=2).carry_on(agent_of(answers, world))
    assert world.keys("stamp") == ["run:1:0", "run:1:1"]
