"""What ends a run by its policy, and that a crash does not make it forget what was spent."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.loop.agents import World, agent_of, asked
from tests.loop.memory_run import CrashSignal, Journal, MemoryRun, crash_at
from tests.loop.scripted_model import Answer, call, calls, provider_error, text

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.records import ToolCompleted
from runlane.journal.wire.results import CONTINUABLE, StopReason
from runlane.worker import BudgetLimits, ModelErrorKind, RuntimePolicy


def look_for_ever() -> list[Answer]:
    """Each response has 10 input tokens and 1 output token."""
    return [calls(call("look"), call("stamp")) for _ in range(30)]


@pytest.mark.parametrize(
    ("policy", "reason", "turns"),
    [
        ({"max_steps": 3}, StopReason.MAX_STEPS, 3),
        ({"max_run_tokens": 33}, StopReason.TOKEN_BUDGET_EXCEEDED, 3),
        ({"max_run_tokens": 34}, StopReason.TOKEN_BUDGET_EXCEEDED, 4),
        ({"budget": BudgetLimits(max_input_tokens=20)}, StopReason.TOKEN_BUDGET_EXCEEDED, 2),
        ({"budget": BudgetLimits(max_output_tokens=2)}, StopReason.TOKEN_BUDGET_EXCEEDED, 2),
        ({"budget": BudgetLimits(max_total_tokens=22)}, StopReason.TOKEN_BUDGET_EXCEEDED, 2),
        ({"budget": BudgetLimits(max_requests=2)}, StopReason.BUDGET_EXCEEDED, 2),
        ({"budget": BudgetLimits(max_iterations=2)}, StopReason.BUDGET_EXCEEDED, 2),
        ({"budget": BudgetLimits(max_tool_calls=3)}, StopReason.BUDGET_EXCEEDED, 2),
        (
            {"session_budget": BudgetLimits(max_total_tokens=22)},
            StopReason.TOKEN_BUDGET_EXCEEDED,
            2,
        ),
        ({"session_budget": BudgetLimits(max_tool_calls=3)}, StopReason.BUDGET_EXCEEDED, 2),
        (
            {"max_run_tokens": 99, "budget": BudgetLimits(max_total_tokens=22)},
            StopReason.TOKEN_BUDGET_EXCEEDED,
            2,
        ),
    ],
)
@pytest.mark.parametrize("crash", [None, 5, 9])
async def test_a_limit_ends_the_run_at_the_same_place_whether_it_crashed_or_not(
    journal: Journal,
    world: World,
    policy: dict[str, Any],
    reason: StopReason,
    turns: int,
    crash: int | None,
) -> None:
    first = MemoryRun(journal, step=crash_at("after a commit", crash or 10**6))
    run = first
    try:
        await first.carry_on(agent_of(look_for_ever(), world, **policy))
    except CrashSignal:
        run = MemoryRun(journal, attempt=2)
        await run.carry_on(agent_of(look_for_ever(), world, **policy))
    assert run.result is not None
    assert (run.result.stop_reason, run.result.turns) == (reason, turns)
    assert run.result.usage.total_tokens == 11 * turns
    assert run.result.stop_reason in CONTINUABLE
    done = [body for body in journal.bodies if isinstance(body, ToolCompleted)]
    assert len(done) == 2 * turns, "what was asked for has a result, made or not"


async def test_calls_over_the_limit_are_not_made(run: MemoryRun, world: World) -> None:
    """The limit is on the whole run, not on one response."""
    agent = agent_of(look_for_ever(), world, budget=BudgetLimits(max_tool_calls=3))
    ending = await run.carry_on(agent)
    assert ending.error == "the run may make 3 tool calls"
    assert [name for name, _ in world.done] == ["look", "stamp", "look"]


@pytest.mark.parametrize("where", ["budget", "session_budget"])
async def test_unknown_usage_is_not_zero(run: MemoryRun, world: World, where: str) -> None:
    policy: dict[str, Any] = {where: BudgetLimits(max_total_tokens=1000)}
    ending = await run.carry_on(agent_of(look_for_ever(), world, usage=None, **policy))
    assert ending.stop_reason is StopReason.USAGE_UNAVAILABLE
    assert run.result is not None
    assert not run.result.usage.complete


async def test_without_a_token_limit_unknown_usage_is_no_matter(
    run: MemoryRun, world: World
) -> None:
    answers: list[Answer] = [calls(call("look")), text("done")]
    policy = BudgetLimits(max_requests=9, max_tool_calls=9)
    ending = await run.carry_on(agent_of(answers, world, usage=None, budget=policy))
    assert ending.stop_reason is StopReason.TEXT_RESPONSE


async def test_the_answer_that_crosses_the_limit_still_counts(run: MemoryRun, world: World) -> None:
    answers: list[Answer] = [calls(call("look")), text("done")]
    ending = await run.carry_on(agent_of(answers, world, max_run_tokens=12))
    assert (ending.stop_reason, ending.output) == (StopReason.TEXT_RESPONSE, "done")


async def test_a_request_that_did_not_fit_is_not_one_with_unknown_usage(
    run: MemoryRun, world: World
) -> None:
    """It was never read: a budget of tokens is not spoiled by it."""
    answers: list[Answer] = [
        calls(call("look")),
        provider_error(kind=ModelErrorKind.CONTEXT_OVERFLOW),
    ]
    ending = await run.carry_on(agent_of(answers, world, max_run_tokens=100))
    assert ending.stop_reason is StopReason.CONTEXT_OVERFLOW
    assert run.result is not None
    assert run.result.usage.complete
    assert run.result.usage.request_count == 1


async def test_the_history_counts_for_a_session_and_not_for_a_run(
    journal: Journal, world: World
) -> None:
    await MemoryRun(journal).carry_on(agent_of([text("one")], world))
    limits = BudgetLimits(max_total_tokens=11)
    second = MemoryRun(journal)
    second.run_id = "second"
    await second.begin("again")
    agent = agent_of([text("two")], world, session_budget=limits)
    await agent.startup()
    ending = await second.go_on(agent)
    assert ending.stop_reason is StopReason.TOKEN_BUDGET_EXCEEDED
    assert not asked(agent)
    agent = agent_of([text("two")], world, budget=limits, max_run_tokens=11)
    await agent.startup()
    assert (await second.go_on(agent)).output == "two"


async def test_a_run_that_goes_on_too_long_starts_no_further_turn(
    run: MemoryRun, world: World
) -> None:
    run.elapsed_s = 60.0
    agent = agent_of([text("hi")], world, budget=BudgetLimits(max_wall_s=60))
    ending = await run.carry_on(agent)
    assert ending.stop_reason is StopReason.DEADLINE_EXCEEDED
    assert not asked(agent)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ({"model_timeout_s": 0.01}, StopReason.PROVIDER_TIMEOUT),
        ({"budget": BudgetLimits(max_wall_s=0.01)}, StopReason.PROVIDER_TIMEOUT),
    ],
)
async def test_a_model_that_says_nothing_more_is_left(
    run: MemoryRun, world: World, policy: dict[str, Any], reason: StopReason
) -> None:
    ending = await run.carry_on(agent_of([None], world, **policy))
    assert ending.stop_reason is reason
    assert ending.error is not None
    assert "within 0.01 s" in ending.error


async def test_an_answer_in_words_does_not_finish_a_run_that_must_finish_explicitly(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    answers: list[Answer] = [
        *(
            text("well"),
            text("hm"),
            calls(call("look")),
            text("so"),
            calls(call("end", control="complete")),
        ),
    ]
    agent = agent_of(answers, world, require_explicit_finish=True)
    ending = await run.carry_on(agent)
    assert ending.stop_reason is StopReason.TOOL_COMPLETION
    last = [context.messages[-1] for context in asked(agent)]
    reminders = [
        getattr(each, "content", "") if type(each).__name__ == "SystemMessage" else ""
        for each in last
    ]
    assert [bool(each) for each in reminders] == [False, True, True, False, True]
    assert reminders[2].endswith("Retry 2/3.")
    assert "Retry" not in reminders[1]
    assert all("called no tool" not in str(body) for body in journal.bodies)


@pytest.mark.parametrize("crash", [None, 3])
async def test_too_many_answers_without_a_tool_call_end_it(
    journal: Journal, world: World, crash: int | None
) -> None:
    answers: list[Answer] = [text("well")] * 9
    policy: dict[str, Any] = {"require_explicit_finish": True, "max_no_tool_responses": 4}
    run = MemoryRun(journal, step=crash_at("after a commit", crash or 10**6))
    try:
        await run.carry_on(agent_of(answers, world, **policy))
    except CrashSignal:
        run = MemoryRun(journal, attempt=2)
        await run.carry_on(agent_of(answers, world, **policy))
    assert run.result is not None
    assert run.result.stop_reason is StopReason.MAX_NO_TOOL_RESPONSES
    assert run.result.turns == 4


@given(limit=st.integers(1, 5), cut=st.integers(1, 14))
@settings(max_examples=60, deadline=None)
async def test_the_same_call_is_made_less_often_than_the_limit_wherever_it_crashes(
    limit: int, cut: int
) -> None:
    world = World(Journal())
    answers: list[Answer] = [calls(call("pay"))] * 9
    run = MemoryRun(world.journal, step=crash_at("after a commit", cut))
    try:
        await run.carry_on(agent_of(answers, world, max_repeated_tool_calls=limit))
    except CrashSignal:
        run = MemoryRun(world.journal, attempt=2)
        if run.projection.open_run is not None:
            await run.carry_on(agent_of(answers, world, max_repeated_tool_calls=limit))
    assert len(set(world.keys("pay"))) == len(world.keys("pay")) <= limit - 1
    assert run.projection.last_run is not None
    assert run.projection.last_run.stop_reason is StopReason.REPEATED_TOOL_CALL


@pytest.mark.parametrize(
    "limits",
    [
        *({"max_steps": 0}, {"max_steps": None}, {"max_run_tokens": -1}, {"max_steps": True}),
        *({"max_parallel_tool_calls": 0}, {"parallel_tool_calls": 1}, {"model_timeout_s": 0}),
        *({"max_repeated_tool_calls": 2.5}, {"tool_timeout_s": "1"}),
        {"require_explicit_finish": "no"},
        {"max_result_bytes": 0},
        {"max_result_bytes": 4 * 1024 * 1024},
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(limits))):
        RuntimePolicy(**limits)


def test_a_budget_that_cannot_be_meant_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="max_tool_calls"):
        BudgetLimits(max_tool_calls=0)
    with pytest.raises(InvalidInputError, match="session_budget"):
        RuntimePolicy(session_budget=BudgetLimits(max_wall_s=1))
