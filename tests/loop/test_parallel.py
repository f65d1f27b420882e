"""Read-only calls that run at the same time: how many, in what order, and what a crash leaves."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.loop.agents import World, agent_of
from tests.loop.memory_run import CrashSignal, Journal, MemoryRun, crash_at
from tests.loop.scripted_model import Answer, call, calls, text

from runlane.journal.wire.records import KIND_OF, ToolCompleted, ToolOutcome
from runlane.journal.wire.results import StopReason
from runlane.worker import (
    FunctionTool,
    StepOutcome,
    ToolCallContext,
    ToolControl,
    ToolEffect,
    tool,
)


@dataclass
class Gates:
    """Tools that wait until they are let through, and notes of who is inside.

    Attributes:
        entered: Places of calls, as they began.
        inside: How many are inside.
        most: How many have been inside at once.
    """

    entered: list[int] = field(default_factory=list[int])
    inside: int = 0
    most: int = 0
    opened: dict[int, asyncio.Event] = field(default_factory=dict[int, asyncio.Event])
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def gate(self, at: int) -> asyncio.Event:
        return self.opened.setdefault(at, asyncio.Event())

    async def until(self, *entered: int) -> None:
        async with asyncio.timeout(20), self.changed:
            await self.changed.wait_for(lambda: set(entered) <= set(self.entered))

    async def enter(self, at: int) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        async with self.changed:
            self.entered.append(at)
            self.changed.notify_all()
        try:
            await self.gate(at).wait()
        finally:
            self.inside -= 1

    def tool(self) -> FunctionTool[..., Any]:
        @tool(effect=ToolEffect.READ_ONLY)
        async def read(
            context: ToolCallContext, at: int, control: ToolControl | None = None
        ) -> StepOutcome:
            """Read something behind a gate."""
            await self.enter(at)
            return StepOutcome(f"read {at}", control or ToolControl.CONTINUE)

        return read


def contents(journal: Journal) -> list[str]:
    return [body.message.content for body in journal.bodies if isinstance(body, ToolCompleted)]


def commits(journal: Journal) -> list[list[str]]:
    return [[KIND_OF[type(body)] for body in commit] for commit in journal.commits]


async def test_without_leave_calls_run_one_after_the_other(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    gates = Gates()
    for at in range(3):
        gates.gate(at).set()
    answers: list[Answer] = [calls(*(call("read", at=at) for at in range(3))), text("done")]
    await run.carry_on(agent_of(answers, world, more=[gates.tool()]))
    assert gates.most == 1


async def test_a_batch_costs_one_commit_for_its_intents_and_one_for_its_results(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    gates = Gates()
    for at in range(5):
        gates.gate(at).set()
    answers: list[Answer] = [calls(*(call("read", at=at) for at in range(5))), text("done")]
    agent = agent_of(answers, world, more=[gates.tool()], parallel_tool_calls=True)
    await run.carry_on(agent)
    assert commits(journal)[1:3] == [
        ["message_appended", *["tool_started"] * 5],
        ["tool_completed"] * 5,
    ]
    assert contents(journal) == [f"read {at}" for at in range(5)]


async def test_a_limit_lets_the_next_one_in_as_soon_as_one_is_out(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    gates = Gates()
    answers: list[Answer] = [calls(*(call("read", at=at) for at in range(4))), text("done")]
    agent = agent_of(
        answers, world, more=[gates.tool()], parallel_tool_calls=True, max_parallel_tool_calls=2
    )
    task = asyncio.create_task(run.carry_on(agent))
    await gates.until(0, 1)
    gates.gate(1).set()
    await gates.until(2)
    gates.gate(2).set()
    await gates.until(3)
    assert contents(journal) == [], "the first one is not out yet"
    gates.gate(0).set()
    gates.gate(3).set()
    await task
    assert gates.most == 2
    assert contents(journal) == [f"read {at}" for at in range(4)]


async def test_calls_with_effects_are_barriers(run: MemoryRun, world: World) -> None:
    gates = Gates()
    asked = [call("read", at=0), call("pay"), call("read", at=1), call("stamp"), call("fly")]
    agent = agent_of(
        [calls(*asked, call("read", at=2)), text("done")],
        world,
        more=[gates.tool()],
        parallel_tool_calls=True,
    )
    task = asyncio.create_task(run.carry_on(agent))
    for at in range(3):
        await gates.until(at)
        assert len(gates.entered) == at + 1
        assert [name for name, _ in world.done] == [[], ["pay"], ["pay", "stamp"]][at]
        gates.gate(at).set()
    await task
    assert gates.most == 1


async def test_a_crash_in_the_middle_of_a_batch_keeps_the_results_before_it(
    world: World, journal: Journal
) -> None:
    gates = Gates()
    answers: list[Answer] = [calls(*(call("read", at=at) for at in range(3))), text("done")]
    agent = agent_of(answers, world, more=[gates.tool()], parallel_tool_calls=True)
    first = MemoryRun(journal)
    task = asyncio.create_task(first.carry_on(agent))
    await gates.until(0, 1, 2)
    gates.gate(0).set()
    async with asyncio.timeout(20):
        while not contents(journal):  # noqa: ASYNC110 (one commit away)
            await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gates.entered.clear()
    for at in range(3):
        gates.gate(at).set()
    await MemoryRun(journal, attempt=2).carry_on(agent)
    assert sorted(gates.entered) == [1, 2], "what had a result is not read again"
    assert contents(journal) == [f"read {at}" for at in range(3)]


async def test_the_first_result_in_source_order_that_ends_the_run_does(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    """What is under way settles first; what has not begun is not begun."""
    gates = Gates()
    asked = [
        call("read", at=0),
        call("read", at=1, control="reject"),
        call("read", at=2, control="complete"),
        call("read", at=3),
        call("pay"),
    ]
    agent = agent_of(
        [calls(*asked)],
        world,
        more=[gates.tool()],
        parallel_tool_calls=True,
        max_parallel_tool_calls=3,
    )
    task = asyncio.create_task(run.carry_on(agent))
    await gates.until(0, 1, 2)
    for at in (2, 1, 0):
        gates.gate(at).set()
        await asyncio.sleep(0)
    ending = await task
    assert (ending.stop_reason, ending.output) == (StopReason.TOOL_REJECTED, "read 1")
    assert gates.entered == [0, 1, 2]
    bodies = [body for body in journal.bodies if isinstance(body, ToolCompleted)]
    assert [body.outcome for body in bodies] == [ToolOutcome.OK] * 3 + [ToolOutcome.CANCELLED] * 2


async def test_a_batch_that_would_repeat_itself_too_often_runs_one_by_one(
    run: MemoryRun, world: World
) -> None:
    agent = agent_of([calls(*[call("look")] * 4)], world, parallel_tool_calls=True)
    ending = await run.carry_on(agent)
    assert ending.stop_reason is StopReason.REPEATED_TOOL_CALL
    assert world.keys("look") == ["run:1:0", "run:1:1"]


BATCHES = st.lists(st.sampled_from(["look", "pay", "stamp", "fail", "fly"]), min_size=1, max_size=6)


@given(names=BATCHES, limit=st.none() | st.integers(1, 3), cut=st.integers(1, 40))
@settings(max_examples=150, deadline=None)
async def test_side_by_side_or_not_the_transcript_is_the_same(
    names: list[str], limit: int | None, cut: int
) -> None:
    """Also if the process dies anywhere."""
    answers: list[Answer] = [
        calls(
            *(call(name, at=at) if name == "fly" else call(name) for at, name in enumerate(names))
        ),
        text("done"),
    ]
    transcripts: list[list[str]] = []
    for parallel in (False, True):
        world = World(Journal())
        policy: dict[str, Any] = {
            "parallel_tool_calls": parallel,
            "max_parallel_tool_calls": limit,
            "max_repeated_tool_calls": 99,
        }
        for attempt, at in enumerate((cut if parallel else 10**6, 10**6), 1):
            world.step = crash_at("anywhere", at)
            run = MemoryRun(world.journal, attempt, step=world.step)
            if run.projection.last_run is not None:
                break
            with suppress(CrashSignal):
                await run.carry_on(agent_of(answers, world, **policy))
        transcripts.append(contents(world.journal))
        assert len(set(world.keys("pay"))) == len(world.keys("pay"))
    alone, together = transcripts
    assert len(alone) == len(together)
    for one, other in zip(alone, together, strict=True):
        assert one == other or "outcome_unknown" in other
