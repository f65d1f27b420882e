"""A run that is told to stop, loses its lease, or whose worker drains."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.loop.agents import World, agent_of
from tests.loop.memory_run import Journal, MemoryRun
from tests.loop.scripted_model import ScriptedModel, call, calls, text

from runlane.journal.errors import WriteRefusedError
from runlane.journal.wire.records import MessageAppended, ToolCompleted, ToolOutcome, ToolStarted
from runlane.journal.wire.results import StopReason
from runlane.worker import Agent, ToolCallContext, ToolEffect, tool
from runlane.worker.loop.ending import Ending
from runlane.worker.loop.session import HandBackSignal


def outcomes(journal: Journal) -> list[ToolOutcome]:
    return [body.outcome for body in journal.bodies if isinstance(body, ToolCompleted)]


def check_aborted(ending: Ending) -> None:
    assert (ending.stop_reason, ending.error) == (StopReason.EXTERNAL_ABORT, "aborted")


@asynccontextmanager
async def going_on(run: MemoryRun, agent: Agent) -> AsyncGenerator["asyncio.Task[Ending]", None]:
    task = asyncio.create_task(run.carry_on(agent))
    async with asyncio.timeout(20):
        yield task
        await asyncio.wait([task])


async def test_an_abort_before_the_first_turn_asks_no_model(run: MemoryRun, world: World) -> None:
    run.cancellation.cancel("aborted")
    agent = agent_of([text("hi")], world)
    check_aborted(await run.carry_on(agent))
    assert isinstance(agent.model, ScriptedModel)
    assert not agent.model.contexts


async def test_an_abort_leaves_the_model_in_the_middle_of_its_answer(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    agent = agent_of([calls(call("look")), None], world)
    assert isinstance(agent.model, ScriptedModel)
    async with going_on(run, agent) as task:
        await agent.model.silent.wait()
        run.cancellation.cancel("aborted")
    check_aborted(task.result())
    assert sum(isinstance(body, MessageAppended) for body in journal.bodies) == 1


@pytest.mark.parametrize("effect", ToolEffect)
async def test_an_abort_stops_the_tool_and_skips_the_calls_behind_it(
    run: MemoryRun, journal: Journal, world: World, effect: ToolEffect
) -> None:
    begun = asyncio.Event()

    @tool(effect=effect)
    async def wait(context: ToolCallContext) -> None:
        begun.set()
        await asyncio.Event().wait()

    agent = agent_of([calls(call("look"), call("wait"), call("pay"))], world, more=[wait])
    async with going_on(run, agent) as task:
        await begun.wait()
        run.cancellation.cancel("aborted")
    check_aborted(task.result())
    assert outcomes(journal) == [ToolOutcome.OK, ToolOutcome.CANCELLED, ToolOutcome.CANCELLED]
    assert not world.keys("pay")


@pytest.mark.parametrize(("commit", "paid"), [(1, 0), (2, 0), (3, 1), (4, 2)])
async def test_the_news_of_an_abort_comes_with_a_commit_and_begins_nothing_more(
    run: MemoryRun, journal: Journal, world: World, commit: int, paid: int
) -> None:
    run.abort_at_commit = commit
    check_aborted(await run.carry_on(agent_of([calls(call("pay"), call("pay")), text("")], world)))
    assert len(world.keys("pay")) == paid
    answered = len(outcomes(journal))
    assert answered == (0 if commit == 1 else 2)
    assert outcomes(journal).count(ToolOutcome.OK) == paid


async def test_a_side_effect_does_not_begin_without_the_lease(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    def lose(word: str) -> None:
        intents = [body for body in journal.bodies if isinstance(body, ToolStarted)]
        run.lease_lost = word == "after a commit" and len(intents) == 2

    run.step = lose
    agent = agent_of([calls(call("pay"), call("pay")), text("done")], world)
    with pytest.raises(WriteRefusedError):
        await run.carry_on(agent)
    assert world.done == [("pay", "run:1:0")]


async def test_nothing_goes_on_after_a_refused_commit(run: MemoryRun, world: World) -> None:
    def lose(word: str) -> None:
        run.lease_lost = True

    world.step = lose
    with pytest.raises(WriteRefusedError):
        await run.carry_on(agent_of([calls(call("look"), call("pay")), text("done")], world))
    assert not world.keys("pay")


def _drain_when(run: MemoryRun, moment: str, at: int) -> Callable[[str], None]:
    seen = 0

    def step(word: str) -> None:
        nonlocal seen
        seen += word == moment
        run.draining = run.draining or seen == at

    return step


@pytest.mark.parametrize(
    ("moment", "at", "executed"),
    [
        ("after a commit", 1, 0),
        ("a model request", 1, 2),
        ("before an effect", 1, 2),
        ("after an effect", 2, 2),
        ("a model request", 2, 3),
    ],
)
async def test_a_draining_worker_hands_back_at_the_turn_boundary_and_nowhere_else(
    run: MemoryRun, journal: Journal, world: World, moment: str, at: int, executed: int
) -> None:
    run.step = world.step = _drain_when(run, moment, at)
    answers = [calls(call("pay"), call("look")), calls(call("pay")), text("done")]
    with pytest.raises(HandBackSignal):
        await run.carry_on(agent_of(answers, world))
    assert len(world.done) == executed
    open_run = journal.project().open_run
    assert open_run is not None
    assert not open_run.calls_without_result()

    heir = MemoryRun(journal, attempt=2)
    run.step = world.step = lambda _: None
    assert (await heir.carry_on(agent_of(answers, world))).output == "done"
    assert len(world.done) == 3
    assert outcomes(journal) == [ToolOutcome.OK] * 3


async def test_a_draining_worker_finishes_the_run_whose_last_answer_is_under_way(
    run: MemoryRun, world: World
) -> None:
    world.step = _drain_when(run, "a model request", 2)
    ending = await run.carry_on(agent_of([calls(call("look")), text("done")], world))
    assert ending.output == "done"
