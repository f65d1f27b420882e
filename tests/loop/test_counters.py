"""What a middleware counts for a run is journaled: a crash does not start it anew."""

from collections.abc import Callable

from tests.loop.agents import World, agent_of
from tests.loop.memory_run import CrashSignal, Journal, MemoryRun, crash_at
from tests.loop.scripted_model import Answer, call, calls, text

from runlane.journal.wire.records import ToolStarted
from runlane.worker import StepOutcome, ToolCallContext, ToolMiddleware
from runlane.worker.tools import ToolNext


class CountingMiddleware(ToolMiddleware):
    """Lets each tool through twice."""

    def __init__(self, step: Callable[[str], None] = lambda _: None) -> None:
        self.counts: list[tuple[str, int]] = []

    async def __call__(self, context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        count = context.count(f"calls of {context.tool_name}")
        assert context.count(f"calls of {context.tool_name}") == count, "one call counts once"
        self.counts.append((context.operation_key, count))
        if count > 2:
            return StepOutcome("that is enough")
        return await call_next(context)


def answers() -> list[Answer]:
    rounds: list[Answer] = [
        calls(call("look"), call("pay", amount=n), call("look")) for n in range(2)
    ]
    return [*rounds, calls(call("pay", amount=9)), text("done")]


async def test_counts_go_on_over_the_turns_of_a_run(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    counting = CountingMiddleware()
    await run.carry_on(agent_of(answers(), world, middlewares=[counting]))
    assert [count for _, count in counting.counts] == [1, 1, 2, 3, 2, 4, 3]
    assert len(world.keys("pay")) == 2
    assert "that is enough" in str(journal.bodies)
    started = [body.counted for body in journal.bodies if isinstance(body, ToolStarted)]
    assert started[0] == ("calls of look",)


async def test_counts_are_the_same_wherever_the_process_dies(
    journal: Journal, world: World
) -> None:
    for cut in range(1, 30):
        world = World(Journal())
        expected = CountingMiddleware()
        await MemoryRun(world.journal).carry_on(agent_of(answers(), world, middlewares=[expected]))
        world = World(Journal())
        world.step = crash_at("anywhere", cut)
        counting = CountingMiddleware()
        for attempt in (1, 2):
            run = MemoryRun(world.journal, attempt, step=world.step)
            try:
                await run.carry_on(agent_of(answers(), world, middlewares=[counting]))
            except CrashSignal:
                world.step = lambda _: None
        assert dict(counting.counts).items() <= dict(expected.counts).items()
        assert len(world.keys("pay")) == len(set(world.keys("pay"))) <= 2
