"""A result that is too large for a record is kept whole beside the journal."""

from typing import cast

import pytest
from tests.loop.agents import World, agent_of
from tests.loop.memory_run import CrashSignal, Journal, MemoryRun, crash_at
from tests.loop.scripted_model import ScriptedModel, call, calls, text

from runlane.journal.errors import WriteRefusedError
from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import ToolCompleted, ToolOutcome
from runlane.worker import FunctionTool, StepOutcome, ToolControl, ToolEffect, tool

LIMIT = 1024 * 1024
WHOLE = "€" * 500_000


@tool(effect=ToolEffect.READ_ONLY)
async def tell() -> str:
    """Tell all."""
    return WHOLE


@tool(effect=ToolEffect.READ_ONLY)
async def conclude() -> StepOutcome:
    """Tell all, and nothing more."""
    return StepOutcome(WHOLE, ToolControl.COMPLETE)


@tool
async def pay_and_tell() -> str:
    """Pay, and tell all about it."""
    return WHOLE


@pytest.fixture
def world() -> World:
    return World(Journal())


def completed(world: World) -> list[ToolCompleted]:
    return [body for body in world.journal.bodies if isinstance(body, ToolCompleted)]


async def test_the_model_reads_a_part_and_where_all_of_it_is(world: World) -> None:
    run = MemoryRun(world.journal, blob_bytes_max=2 * LIMIT)
    agent = agent_of([calls(call("tell"), call("look")), text("done")], world, more=[tell])
    assert (await run.carry_on(agent)).output == "done"
    told, looked = completed(world)
    assert told.full is not None
    assert world.journal.blobs == {told.full.digest: WHOLE.encode()}
    assert (told.full.size, told.full.media_type) == (1_500_000, "text/plain")
    read = cast("ScriptedModel", agent.model).contexts[1].messages[-2]
    assert read == told.message
    assert isinstance(read, ToolMessage)
    excerpt, _, marker = read.content.rpartition("\n")
    assert WHOLE.startswith(excerpt)
    assert LIMIT - 3 < len(excerpt.encode()) <= LIMIT
    assert f"all 1500000 are kept as blob {told.full.digest}]" in marker
    assert looked.full is None


async def test_what_is_over_the_limit_of_the_deployment_is_dropped(world: World) -> None:
    run = MemoryRun(world.journal, blob_bytes_max=LIMIT + 10)
    await run.carry_on(agent_of([calls(call("tell")), text("done")], world, more=[tell]))
    (told,) = completed(world)
    assert told.full is not None
    (content,) = world.journal.blobs.values()
    assert WHOLE.startswith(content.decode())
    assert LIMIT + 7 < told.full.size == len(content) <= LIMIT + 10
    assert f"the first {told.full.size} are kept as blob" in told.message.content
    assert told.message.content.endswith(", the rest is lost]")


async def test_a_result_that_ends_the_run_is_its_output(world: World) -> None:
    run = MemoryRun(world.journal, blob_bytes_max=2 * LIMIT)
    ending = await run.carry_on(agent_of([calls(call("conclude"))], world, more=[conclude]))
    (told,) = completed(world)
    assert told.full is not None
    assert ending.output == told.message.content
    assert world.journal.blobs[told.full.digest] == WHOLE.encode()


@pytest.mark.parametrize("place", ["before content is kept", "after content is kept"])
@pytest.mark.parametrize(
    ("teller", "outcome"), [(tell, ToolOutcome.OK), (pay_and_tell, ToolOutcome.UNKNOWN)]
)
async def test_a_crash_around_it_loses_no_more_than_any_other(
    world: World, place: str, teller: FunctionTool[[], str], outcome: ToolOutcome
) -> None:
    answers = [calls(call(teller.definition.name)), text("done")]
    run = MemoryRun(world.journal, step=crash_at(place, 1), blob_bytes_max=2 * LIMIT)
    with pytest.raises(CrashSignal):
        await run.carry_on(agent_of(answers, world, more=[teller]))
    assert completed(world) == []
    again = MemoryRun(world.journal, 2, blob_bytes_max=2 * LIMIT)
    assert (await again.carry_on(agent_of(answers, world, more=[teller]))).output == "done"
    (result,) = completed(world)
    assert (result.outcome, result.full is not None) == (outcome, outcome is ToolOutcome.OK)
    assert len(world.journal.blobs) <= 1


async def test_without_the_lease_nothing_is_kept(world: World) -> None:
    run = MemoryRun(world.journal, blob_bytes_max=2 * LIMIT)

    @tool(effect=ToolEffect.READ_ONLY)
    async def lose() -> str:
        """Lose the lease."""
        run.lease_lost = True
        return WHOLE

    with pytest.raises(WriteRefusedError):
        await run.carry_on(agent_of([calls(call("lose"))], world, more=[lose]))
    assert world.journal.blobs == {}


async def test_an_agent_says_how_much_of_a_result_its_model_reads(
    run: MemoryRun, journal: Journal
) -> None:
    @tool
    async def recite() -> str:
        return "0123456789" * 100

    answers = [calls(call("recite")), text("done")]
    await run.carry_on(agent_of(answers, World(journal), more=[recite], max_result_bytes=50))
    (body,) = [body for body in journal.bodies if isinstance(body, ToolCompleted)]
    assert body.message.content.startswith("0123456789" * 5 + "\n[cut: 950 of 1000 bytes")
