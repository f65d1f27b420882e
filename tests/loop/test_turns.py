"""What the loop asks, does and journals, turn by turn."""

from typing import cast

import pytest
from tests.loop.agents import World, agent_of
from tests.loop.memory_run import Journal, MemoryRun
from tests.loop.scripted_model import (
    Answer,
    ScriptedModel,
    UnfinishedModel,
    call,
    calls,
    provider_error,
    raw_call,
    text,
)

from runlane.journal.wire.events import EventKind
from runlane.journal.wire.messages import (
    AssistantMessage,
    ModelToolCall,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.records import KIND_OF, ToolCompleted, ToolOutcome
from runlane.journal.wire.results import STATUS_OF, RunStatus, StopReason
from runlane.worker import Agent, ModelErrorKind, ToolControl

ENDS = {
    ToolControl.COMPLETE: StopReason.TOOL_COMPLETION,
    ToolControl.REJECT: StopReason.TOOL_REJECTED,
    ToolControl.CANCEL: StopReason.TOOL_CANCELLED,
}


def kinds(journal: Journal) -> list[list[str]]:
    return [[KIND_OF[type(body)] for body in commit] for commit in journal.commits]


def results(journal: Journal) -> list[ToolCompleted]:
    return [body for body in journal.bodies if isinstance(body, ToolCompleted)]


async def test_a_text_ends_the_run_and_is_journaled_with_its_end(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    agent = agent_of([text("good day")], world)
    ending = await run.carry_on(agent)
    assert (ending.stop_reason, ending.output) == (StopReason.TEXT_RESPONSE, "good day")
    assert kinds(journal) == [["run_started"], ["message_appended", "run_finished"]]
    assert run.said == ["good", "day"]
    assert run.events == [
        (EventKind.TURN_STARTED, 1, None),
        (EventKind.ASSISTANT_THINKING_DELTA, 1, {"delta": "hm"}),
        (EventKind.TURN_COMPLETED, 1, None),
    ]
    (context,) = cast("ScriptedModel", agent.model).contexts
    assert context.messages == (SystemMessage("You are a test."), UserMessage("do it"))
    assert [schema.name for schema in context.tools] == [
        *("look", "stamp", "pay", "charge", "fail", "end")
    ]


async def test_calls_of_one_response_are_done_in_order_with_one_commit_each(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    answers = [calls(call("pay", amount=1), call("look"), call("pay", amount=2)), text("done")]
    agent = agent_of(answers, world)
    ending = await run.carry_on(agent)
    assert ending.output == "done"
    assert kinds(journal) == [
        ["run_started"],
        ["message_appended", "tool_started"],
        ["tool_completed", "tool_started"],
        ["tool_completed", "tool_started"],
        ["tool_completed"],
        ["message_appended", "run_finished"],
    ]
    assert world.done == [("pay", "run:1:0"), ("look", "run:1:1"), ("pay", "run:1:2")]
    read = cast("ScriptedModel", agent.model).contexts[1].messages[3:]
    assert [message.content for message in read] == ["paid 1", "seen", "paid 2"]
    assert (EventKind.TURN_COMPLETED, 1, None) in run.events


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (call("fly"), "unknown tool; there are: look, stamp"),
        (raw_call("pay", '{"amount": '), "not a JSON object"),
        (raw_call("pay", "[1]"), "not a JSON object"),
        (call("pay", amount="much"), "invalid_tool_arguments"),
        (call("pay", price=1), "invalid_tool_arguments"),
    ],
)
async def test_a_call_that_cannot_be_made_is_answered_and_never_begun(
    run: MemoryRun, journal: Journal, world: World, asked: ModelToolCall, words: str
) -> None:
    answers = [calls(asked, call("look")), text("I see")]
    ending = await run.carry_on(agent_of(answers, world))
    assert ending.output == "I see"
    refused, looked = results(journal)
    assert refused.outcome is ToolOutcome.ERROR
    assert refused.message.is_error
    assert words in refused.message.content
    assert looked.outcome is ToolOutcome.OK
    assert world.done == [("look", "run:1:1")]
    assert kinds(journal)[1] == ["message_appended", "tool_completed", "tool_started"]


async def test_a_response_of_nothing_but_impossible_calls_is_journaled_too(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    await run.carry_on(agent_of([calls(call("fly"), call("swim")), text("I see")], world))
    assert kinds(journal)[1] == ["message_appended", "tool_completed", "tool_completed"]


async def test_what_a_tool_raises_is_read_by_the_model(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    ending = await run.carry_on(agent_of([calls(call("fail")), text("I see")], world))
    assert ending.output == "I see"
    (failed,) = results(journal)
    assert failed.outcome is ToolOutcome.ERROR
    assert "no luck" in failed.message.content


@pytest.mark.parametrize("control", ENDS)
async def test_a_tool_may_end_the_run_and_leaves_no_call_without_result(
    run: MemoryRun, journal: Journal, world: World, control: ToolControl
) -> None:
    asked = calls(call("look"), call("end", control=control), call("pay"), call("fly"))
    ending = await run.carry_on(agent_of([asked], world))
    assert ending.stop_reason is ENDS[control]
    assert ending.output == f'{{"control": "{control}"}}'
    outcomes = [body.outcome for body in results(journal)]
    assert outcomes == [ToolOutcome.OK, ToolOutcome.OK, *[ToolOutcome.CANCELLED] * 2]
    assert [body.index for body in results(journal)] == [0, 1, 2, 3]
    assert not world.keys("pay")
    assert kinds(journal)[-1] == [*["tool_completed"] * 3, "run_finished"]
    assert journal.project().open_run is None


async def test_progress_is_heard_with_the_call_that_it_belongs_to(
    run: MemoryRun, world: World
) -> None:
    await run.carry_on(agent_of([calls(call("end", control="complete"))], world))
    progress = [payload for kind, _, payload in run.events if kind is EventKind.TOOL_PROGRESSED]
    assert progress == [
        {
            "tool_call_id": "id-end",
            "tool_name": "end",
            "update": {"message": "ending", "data": None},
        }
    ]


async def test_a_run_takes_no_more_turns_than_permitted(run: MemoryRun, world: World) -> None:
    answers = [calls(call("look"))] * 5
    ending = await run.carry_on(agent_of(answers, world, max_steps=3, max_repeated_tool_calls=9))
    assert ending.stop_reason is StopReason.MAX_STEPS
    assert "3 permitted turns" in (ending.error or "")
    assert len(world.keys("look")) == 3


@pytest.mark.parametrize("answer", [AssistantMessage(), AssistantMessage("")])
async def test_an_answer_of_nothing_is_an_end_that_says_so(
    run: MemoryRun, journal: Journal, world: World, answer: AssistantMessage
) -> None:
    ending = await run.carry_on(agent_of([calls(call("look")), answer], world))
    assert ending.stop_reason is StopReason.EMPTY_RESPONSE
    assert ending.output is None
    assert kinds(journal)[-1] == ["message_appended", "run_finished"]


@pytest.mark.parametrize("kind", ModelErrorKind)
async def test_a_fault_of_the_provider_ends_the_run_by_its_kind(
    run: MemoryRun, journal: Journal, world: World, kind: ModelErrorKind
) -> None:
    answers: list[Answer] = [calls(call("look")), provider_error(kind=kind)]
    ending = await run.carry_on(agent_of(answers, world))
    assert ending.stop_reason is provider_error(kind=kind).stop_reason
    assert STATUS_OF.get(ending.stop_reason, RunStatus.FAILED) is RunStatus.FAILED
    assert ending.error == "the provider is unwilling"
    assert kinds(journal)[-1] == ["run_finished"], "half an answer is no answer"


async def test_a_stream_without_a_response_is_a_fault_of_the_provider(run: MemoryRun) -> None:
    ending = await run.carry_on(Agent("agent", UnfinishedModel()))
    assert ending.stop_reason is StopReason.PROVIDER_ERROR
    assert "no complete response" in (ending.error or "")


async def test_results_come_right_behind_the_response_that_asked_for_them(
    run: MemoryRun, journal: Journal, world: World
) -> None:
    answers = [calls(call("look"), call("fly")), calls(call("pay")), text("done")]
    await run.carry_on(agent_of(answers, world))
    roles = [type(message) for message in journal.project().messages]
    assert roles == [
        *(UserMessage, AssistantMessage, ToolMessage, ToolMessage),
        *(AssistantMessage, ToolMessage, AssistantMessage),
    ]
