"""Whatever a run does and wherever its processes die, it comes to one good end."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.loop.agents import World, agent_of
from tests.loop.memory_run import CrashSignal, Journal, MemoryRun, crash_at
from tests.loop.scripted_model import Answer, call, calls, raw_call, text

from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    ModelToolCall,
    ToolMessage,
)
from runlane.journal.wire.records import RunFinished, ToolCompleted, ToolOutcome, ToolStarted
from runlane.journal.wire.results import StopReason
from runlane.worker import Agent, RecoveryPolicy

CALLS: st.SearchStrategy[ModelToolCall] = st.sampled_from(
    [
        *(call("pay"), call("pay"), call("look"), call("stamp"), call("charge"), call("fail")),
        *(call("fly"), raw_call("pay", "{"), call("pay", amount="much")),
    ]
)
TURNS = st.lists(st.lists(CALLS, min_size=1, max_size=3), min_size=1, max_size=3)
CUTS = st.lists(st.tuples(st.integers(1, 25), st.booleans()), max_size=5)
"""For each attempt: the step at which its process dies, and whether the server changes then."""

NEVER = 10**6


@given(turns=TURNS, cuts=CUTS, policy=st.sampled_from(RecoveryPolicy))
@settings(max_examples=300, deadline=None)
async def test_a_run_that_is_cut_anywhere_comes_to_one_good_end(
    turns: list[list[ModelToolCall]], cuts: list[tuple[int, bool]], policy: RecoveryPolicy
) -> None:
    world = World(Journal())
    answers: list[Answer] = [*(calls(*turn) for turn in turns), text("done")]
    server_changed = False
    for attempt, (cut, server_changes) in enumerate([*cuts, (NEVER, False)], 1):
        world.step = crash_at("anywhere", cut)
        run = MemoryRun(world.journal, attempt, server_changed, world.step)
        agent = agent_of(answers, world, recovery_policy=policy, max_repeated_tool_calls=99)
        await _until_dead(run, agent)
        if any(isinstance(body, RunFinished) for body in world.journal.bodies):
            break
        server_changed = server_changes
    _check_end(world, turns, policy)
    _check_transcript(world.journal.project().messages)
    _check_effects(world)


async def _until_dead(run: MemoryRun, agent: Agent) -> None:
    try:
        await run.carry_on(agent)
    except CrashSignal:
        return


def _check_end(world: World, turns: list[list[ModelToolCall]], policy: RecoveryPolicy) -> None:
    (finished,) = [body for body in world.journal.bodies if isinstance(body, RunFinished)]
    reason = finished.result.stop_reason
    if reason is StopReason.RUNTIME_ERROR:
        assert policy is RecoveryPolicy.FAIL
        assert _results(world)[ToolOutcome.UNKNOWN] == 1
    else:
        assert reason is StopReason.TEXT_RESPONSE
        assert _results(world).total() == sum(len(turn) for turn in turns)
        assert policy is RecoveryPolicy.REPORT or not _results(world)[ToolOutcome.UNKNOWN]


def _results(world: World) -> Counter[ToolOutcome]:
    bodies = world.journal.bodies
    return Counter(body.outcome for body in bodies if isinstance(body, ToolCompleted))


def _check_transcript(messages: list[ContextMessage]) -> None:
    """Behind each response stand the results of its calls, one for each, in order."""
    expected: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id == expected.pop(0)
            continue
        assert not expected
        if isinstance(message, AssistantMessage):
            expected = [each.id for each in message.tool_calls]
    assert not expected


def _check_effects(world: World) -> None:
    intents: dict[str, ToolStarted] = {}
    for body in world.journal.bodies:
        if isinstance(body, ToolStarted):
            assert body.operation_key == f"run:{body.turn}:{body.index}"
            first = intents.setdefault(body.operation_key, body)
            assert (first.call, first.effect) == (body.call, body.effect)
        if isinstance(body, ToolCompleted):
            key = f"run:{body.turn}:{body.index}"
            executions = sum(done == key for _, done in world.done)
            side_effecting = key in intents and intents[key].effect == "side_effecting"
            assert executions <= 1 or not side_effecting
            if body.outcome is ToolOutcome.OK:
                assert executions >= 1
            if body.outcome is ToolOutcome.UNKNOWN:
                assert body.attempt > 1
                assert key not in intents or intents[key].attempt < body.attempt
