"""Runs are told to stop, at every stage of their lives."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_calls, check_rest, hearing
from tests.e2e.waiting import DEADLINE_S, until

from runlane.journal.wire.records import AbortRequested, ToolOutcome
from runlane.producer import (
    AgentRunResult,
    Client,
    ControlStatus,
    EventKind,
    RunHandle,
    RunStatus,
    StopReason,
)

RACES = 60


@pytest.fixture(scope="module")
def fleet(crew: Fleet) -> Fleet:
    """None of these tests harms a worker: two serve them all."""
    return crew


@pytest.fixture(autouse=True)
async def at_rest(fleet: Fleet) -> AsyncGenerator[None, None]:
    yield
    await check_rest(fleet)


async def _check_stopped(client: Client, handle: RunHandle, reason: str) -> Story:
    result = await handle.result(DEADLINE_S)
    assert _is_abort(result)
    assert result.error == reason
    story = await Story.read(client, handle.session_id)
    assert story.end(handle.run_id).result == result
    return story


def _is_abort(result: AgentRunResult) -> bool:
    ended = (result.status, result.stop_reason)
    return ended == (RunStatus.CANCELLED, StopReason.EXTERNAL_ABORT)


async def test_a_queued_run_ends_at_once_and_the_lane_goes_on(fleet: Fleet, client: Client) -> None:
    session = client.session("queued", agent="clerk")
    first = await session.run('[[tool hold {"gate": "queued"}]]')
    second, third = await session.run("[[tool pay]]"), await session.run("hi")
    assert (await second.abort("not needed")).accepted
    await _check_stopped(client, second, "not needed")
    fleet.open("queued")
    for handle in (first, third):
        assert (await handle.result(DEADLINE_S)).status is RunStatus.COMPLETED
    assert not fleet.ledger.all("pay", session="queued")


@pytest.mark.parametrize("tool", ["hold", "hold_and_pay"])
async def test_a_tool_is_stopped_and_the_calls_behind_it_are_not_begun(
    fleet: Fleet, client: Client, tool: str
) -> None:
    session = client.session(f"in-{tool}", agent="clerk")
    handle = await session.run(f'[[tools {tool} {{"gate": "never"}} ; pay]] [[say done]]')
    await until(
        lambda: bool(fleet.ledger.all(tool, session=session.session_id)), "the tool has begun"
    )
    assert (await handle.abort("stop it")).accepted
    story = await _check_stopped(client, handle, "stop it")
    outcomes = [body.outcome for _, body in sorted(story.results(handle.run_id).items())]
    assert outcomes == [ToolOutcome.CANCELLED, ToolOutcome.CANCELLED]
    assert not fleet.ledger.all("pay", session=session.session_id)
    check_calls(fleet, [story])


@pytest.mark.parametrize("task", [f"[[pace 0.1]] [[say {'blah ' * 900}]]", "[[fault hang]]"])
async def test_a_model_is_left_in_the_middle_of_its_answer(
    fleet: Fleet, client: Client, task: str
) -> None:
    session = client.session(f"in-model-{len(task)}", agent="clerk")
    kind = EventKind.TURN_STARTED if "hang" in task else EventKind.ASSISTANT_TEXT_DELTA
    async with hearing(fleet, session) as heard:
        handle = await session.run(task)
        await heard.until(kind, handle.run_id)
        assert (await handle.abort("too long")).accepted
        await _check_stopped(client, handle, "too long")
        await heard.until_ended(handle.run_id)
    kinds = heard.kinds()
    assert kinds[-1] is EventKind.AGENT_FINISHED
    assert EventKind.ABORT_REQUESTED in kinds
    assert EventKind.MESSAGE_COMPLETED not in kinds


async def test_a_finished_run_stays_what_it_is(client: Client) -> None:
    handle = await client.session("finished", agent="clerk").run("hi")
    result = await handle.result(DEADLINE_S)
    receipt = await handle.abort("too late")
    assert (receipt.status, receipt.accepted) == (ControlStatus.RUN_FINISHED, False)
    assert await handle.result(DEADLINE_S) == result
    assert result.status is RunStatus.COMPLETED
    assert not (await Story.read(client, "finished")).all(AbortRequested)


async def test_the_first_reason_of_two_aborts_stays(fleet: Fleet, client: Client) -> None:
    handle = await client.session("twice", agent="clerk").run('[[tool hold {"gate": "never"}]]')
    await until(lambda: bool(fleet.ledger.all("hold", session="twice")), "the tool has begun")
    receipts = await asyncio.gather(handle.abort("first"), handle.abort("second"))
    assert all(receipt.accepted for receipt in receipts)
    story = await _check_stopped(client, handle, "first")
    assert len(story.all(AbortRequested)) == 1
    assert (await handle.abort("third")).accepted, "it did end by an abort"


async def test_an_abort_that_was_accepted_wins_and_a_late_one_changes_nothing(
    fleet: Fleet, client: Client
) -> None:
    moments = [
        None,
        EventKind.RUN_QUEUED,
        EventKind.AGENT_STARTED,
        EventKind.TURN_STARTED,
        EventKind.TOOL_COMPLETED,
        EventKind.MESSAGE_COMPLETED,
    ]
    raced = await asyncio.gather(*(_race(fleet, client, n, moments[n % 6]) for n in range(RACES)))
    assert True in raced, "some abort came in time"


async def _race(fleet: Fleet, client: Client, number: int, moment: EventKind | None) -> bool:
    """Abort a run as soon as something is heard of it; return whether that was in time."""
    session = client.session(f"race-{number}", agent="clerk")
    async with hearing(fleet, session) as heard:
        handle = await session.run("[[tool look]] [[say done]]")
        if moment is not None:
            await heard.until(moment)
        receipt = await handle.abort("race")
        result = await handle.result(DEADLINE_S)
        await heard.until_ended(handle.run_id)
    assert _is_abort(result) if receipt.accepted else result.status is RunStatus.COMPLETED
    story = await Story.read(client, session.session_id)
    assert story.end(handle.run_id).result == result
    assert heard.committed == story.events
    assert await handle.result(DEADLINE_S) == result
    return receipt.accepted
