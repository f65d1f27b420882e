"""An attempt begins where a crash has cut the one before it."""

from typing import cast

import pytest
from tests.loop.agents import World, agent_of
from tests.loop.memory_run import CrashSignal, Journal, MemoryRun, crash_at
from tests.loop.scripted_model import Answer, ScriptedModel, call, calls, text

from runlane.journal.wire.messages import AssistantMessage, ToolMessage
from runlane.journal.wire.records import MessageAppended, ToolCompleted, ToolOutcome
from runlane.journal.wire.results import StopReason
from runlane.worker import Agent, RecoveryPolicy, ToolCallContext, ToolEffect, tool

INTENT_KEPT = ("after a commit", 2)
EFFECT_DONE = ("after an effect", 1)


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def world(journal: Journal) -> World:
    return World(journal)


async def crash(world: World, answers: list[Answer], word: str, times: int) -> None:
    """Carry the run on until its process dies."""
    run = MemoryRun(world.journal, step=crash_at(word, times))
    world.step = run.step
    with pytest.raises(CrashSignal):
        await run.carry_on(agent_of(answers, world))
    world.step = lambda _: None


def results(journal: Journal) -> list[ToolCompleted]:
    return [body for body in journal.bodies if isinstance(body, ToolCompleted)]


@pytest.mark.parametrize(
    ("name", "moment", "outcome", "executions"),
    [
        ("pay", INTENT_KEPT, ToolOutcome.UNKNOWN, 0),
        ("pay", ("before an effect", 1), ToolOutcome.UNKNOWN, 0),
        ("pay", EFFECT_DONE, ToolOutcome.UNKNOWN, 1),
        ("pay", ("before a commit", 3), ToolOutcome.UNKNOWN, 1),
        ("pay", ("after a commit", 3), ToolOutcome.OK, 1),
        ("pay", ("before a commit", 2), ToolOutcome.OK, 1),
        ("look", INTENT_KEPT, ToolOutcome.OK, 1),
        ("look", EFFECT_DONE, ToolOutcome.OK, 2),
        ("stamp", EFFECT_DONE, ToolOutcome.OK, 2),
        ("charge", INTENT_KEPT, ToolOutcome.UNKNOWN, 0),
        ("charge", EFFECT_DONE, ToolOutcome.OK, 1),
        ("fail", EFFECT_DONE, ToolOutcome.UNKNOWN, 1),
    ],
)
async def test_what_the_journal_says_decides_what_is_done_again(
    world: World, name: str, moment: tuple[str, int], outcome: ToolOutcome, executions: int
) -> None:
    answers: list[Answer] = [calls(call(name)), text("done")]
    await crash(world, answers, *moment)
    ending = await MemoryRun(world.journal, attempt=2).carry_on(agent_of(answers, world))
    assert ending.output == "done"
    assert [body.outcome for body in results(world.journal)] == [outcome]
    assert world.keys(name) == ["run:1:0"] * executions


async def test_calls_that_had_not_begun_are_done_and_results_are_kept(world: World) -> None:
    answers: list[Answer] = [calls(*[call("pay", amount=n) for n in range(4)]), text("done")]
    await crash(world, answers, "after an effect", 2)
    await MemoryRun(world.journal, attempt=2).carry_on(agent_of(answers, world))
    found = [(body.attempt, body.outcome) for body in results(world.journal)]
    assert found == [
        (1, ToolOutcome.OK),
        (2, ToolOutcome.UNKNOWN),
        (2, ToolOutcome.OK),
        (2, ToolOutcome.OK),
    ]
    assert world.keys("pay") == ["run:1:0", "run:1:1", "run:1:2", "run:1:3"]


async def test_a_strict_agent_ends_the_run_and_leaves_no_call_without_result(
    world: World,
) -> None:
    answers: list[Answer] = [calls(call("look"), call("pay"), call("pay")), text("done")]
    await crash(world, answers, "after an effect", 2)
    strict = agent_of(answers, world, recovery_policy=RecoveryPolicy.FAIL)
    ending = await MemoryRun(world.journal, attempt=2).carry_on(strict)
    assert ending.stop_reason is StopReason.RUNTIME_ERROR
    assert "the outcome of pay (run:1:1) is unknown" in (ending.error or "")
    outcomes = [body.outcome for body in results(world.journal)]
    assert outcomes == [ToolOutcome.OK, ToolOutcome.UNKNOWN, ToolOutcome.CANCELLED]
    assert len(world.keys("pay")) == 1


async def test_a_strict_agent_goes_on_where_its_handler_knows(world: World) -> None:
    answers: list[Answer] = [calls(call("charge")), text("done")]
    await crash(world, answers, *EFFECT_DONE)
    strict = agent_of(answers, world, recovery_policy=RecoveryPolicy.FAIL)
    assert (await MemoryRun(world.journal, attempt=2).carry_on(strict)).output == "done"


@pytest.mark.parametrize(
    ("name", "outcome", "executions"),
    [("pay", ToolOutcome.UNKNOWN, 0), ("look", ToolOutcome.OK, 1)],
)
async def test_an_intent_may_be_lost_with_the_server(
    world: World, name: str, outcome: ToolOutcome, executions: int
) -> None:
    """The journal does not show that the second call began, but that proves nothing then."""
    answers: list[Answer] = [calls(call("look"), call(name)), text("done")]
    await crash(world, answers, *EFFECT_DONE)
    world.done.clear()
    heir = MemoryRun(world.journal, attempt=2, server_changed=True)
    await heir.carry_on(agent_of(answers, world))
    assert [body.outcome for body in results(world.journal)] == [ToolOutcome.OK, outcome]
    assert world.done.count((name, "run:1:1")) == executions


async def test_a_lost_intent_concerns_only_the_turn_that_was_cut(world: World) -> None:
    answers: list[Answer] = [calls(call("look")), calls(call("pay")), text("done")]
    await crash(world, answers, *EFFECT_DONE)
    heir = MemoryRun(world.journal, attempt=2, server_changed=True)
    await heir.carry_on(agent_of(answers, world))
    assert [body.outcome for body in results(world.journal)] == [ToolOutcome.OK] * 2


def _replaced(name: str, effect: ToolEffect) -> Agent:
    """The agent after a deployment in which its one tool became another."""

    @tool(name=name, effect=effect)
    async def other(context: ToolCallContext) -> str:
        return "of the new version"

    return Agent("agent", ScriptedModel([None, text("done")]), tools=[other])


@pytest.mark.parametrize(
    ("begun", "heir", "outcome"),
    [
        ("pay", _replaced("other", ToolEffect.READ_ONLY), ToolOutcome.UNKNOWN),
        ("pay", _replaced("pay", ToolEffect.READ_ONLY), ToolOutcome.UNKNOWN),
        ("look", _replaced("look", ToolEffect.SIDE_EFFECTING), ToolOutcome.UNKNOWN),
        ("look", _replaced("other", ToolEffect.READ_ONLY), ToolOutcome.UNKNOWN),
        ("look", _replaced("look", ToolEffect.IDEMPOTENT), ToolOutcome.OK),
    ],
)
async def test_a_tool_that_changed_with_a_deployment_is_judged_by_the_worse_of_both(
    world: World, begun: str, heir: Agent, outcome: ToolOutcome
) -> None:
    await crash(world, [calls(call(begun)), text("done")], *INTENT_KEPT)
    await MemoryRun(world.journal, attempt=2).carry_on(heir)
    assert [body.outcome for body in results(world.journal)] == [outcome]


async def test_a_final_answer_that_is_journaled_is_not_asked_for_again(world: World) -> None:
    first = MemoryRun(world.journal)
    await first.begin()
    message = MessageAppended(run_id="run", attempt=1, turn=1, message=AssistantMessage("done"))
    await first.commit(message)
    agent = agent_of([], world)
    ending = await MemoryRun(world.journal, attempt=2).carry_on(agent)
    assert (ending.stop_reason, ending.output, ending.last) == (
        StopReason.TEXT_RESPONSE,
        "done",
        (),
    )
    assert not cast("ScriptedModel", agent.model).contexts


async def test_turns_are_counted_over_all_attempts(world: World) -> None:
    answers: list[Answer] = [calls(call("look"))] * 9
    await crash(world, answers, "after an effect", 2)
    heir = MemoryRun(world.journal, attempt=2)
    ending = await heir.carry_on(agent_of(answers, world, max_steps=3, max_repeated_tool_calls=9))
    assert ending.stop_reason is StopReason.MAX_STEPS
    assert [body.turn for body in results(world.journal)] == [1, 2, 3]


async def test_an_abort_that_waited_for_the_heir_begins_nothing(world: World) -> None:
    answers: list[Answer] = [calls(call("charge"), call("pay")), text("done")]
    await crash(world, answers, *EFFECT_DONE)
    heir = MemoryRun(world.journal, attempt=2)
    heir.cancellation.cancel("aborted")
    ending = await heir.carry_on(agent_of(answers, world))
    assert ending.stop_reason is StopReason.EXTERNAL_ABORT
    assert not world.keys("pay")
    messages = world.journal.project().messages
    assert sum(isinstance(message, ToolMessage) for message in messages) == 2
