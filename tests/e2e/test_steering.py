"""What is said to a run while it goes on is heard once, or the journal says that it was not."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_calls, check_rest, hearing
from tests.e2e.waiting import DEADLINE_S, until

from runlane.journal.wire.records import AttemptStarted, SteeringDiscarded
from runlane.journal.wire.tree import SteeringApplied
from runlane.producer import (
    AgentRunResult,
    Client,
    ControlStatus,
    EventKind,
    RunHandle,
    RunStatus,
    Session,
    Settings,
    StopReason,
)

RACES = 90
LOUDER = "[[say louder]]"
LONG = " ".join(["blah"] * 100)


@pytest.fixture
async def client_of_crew(crew: Fleet) -> AsyncIterator[Client]:
    settings = Settings(redis_url=crew.url, prefix=crew.prefix)
    async with await Client.connect(settings=settings) as connected:
        yield connected


async def _until_in(fleet: Fleet, session: Session, tool: str) -> None:
    await until(
        lambda: bool(fleet.ledger.all(tool, session=session.session_id)), "the tool has begun"
    )


async def _heard_it(client: Client, handle: RunHandle) -> Story:
    """Wait for the end of a run that was told to say "louder", and did."""
    result = await handle.result(DEADLINE_S)
    assert (result.status, result.output) == (RunStatus.COMPLETED, "louder")
    story = await Story.read(client, handle.session_id)
    assert [body.content for body in story.all(SteeringApplied)] == [LOUDER]
    assert not story.all(SteeringDiscarded)
    return story


async def test_a_run_hears_what_is_said_while_a_tool_is_at_work(
    crew: Fleet, client_of_crew: Client
) -> None:
    session = client_of_crew.session("in-tool", agent="clerk")
    async with hearing(crew, session) as heard:
        handle = await session.run('[[tool hold {"gate": "in-tool"}]] [[say done]]')
        await _until_in(crew, session, "hold")
        receipt = await session.steer(LOUDER)
        assert (receipt.run_id, receipt.status) == (handle.run_id, ControlStatus.ACCEPTED)
        crew.open("in-tool")
        story = await _heard_it(client_of_crew, handle)
        await heard.until_ended(handle.run_id)
    kinds = [kind for kind in heard.kinds() if kind is not EventKind.ASSISTANT_TEXT_DELTA]
    assert kinds[kinds.index(EventKind.TOOL_COMPLETED) :] == [
        *(EventKind.TOOL_COMPLETED, EventKind.TURN_COMPLETED, EventKind.TURN_STARTED),
        *(EventKind.STEERING_APPLIED, EventKind.MESSAGE_COMPLETED, EventKind.TURN_COMPLETED),
        EventKind.AGENT_FINISHED,
    ]
    (applied,) = story.all(SteeringApplied)
    assert (applied.input_id, applied.target_turn) == (receipt.input_id, 2)
    assert heard.committed == story.events


async def test_a_run_takes_another_turn_for_what_is_said_while_it_answers(
    crew: Fleet, client_of_crew: Client
) -> None:
    session = client_of_crew.session("in-answer", agent="clerk")
    async with hearing(crew, session) as heard:
        handle = await session.run(f"[[pace 0.02]] [[say {LONG}]]")
        await heard.until(EventKind.ASSISTANT_TEXT_DELTA, handle.run_id)
        assert (await session.steer(LOUDER)).accepted
        story = await _heard_it(client_of_crew, handle)
        await heard.until_ended(handle.run_id)
    kinds = [kind for kind in heard.kinds() if kind is not EventKind.ASSISTANT_TEXT_DELTA]
    assert kinds[kinds.index(EventKind.MESSAGE_COMPLETED) :] == [
        *(EventKind.MESSAGE_COMPLETED, EventKind.TURN_COMPLETED, EventKind.TURN_STARTED),
        *(EventKind.STEERING_APPLIED, EventKind.MESSAGE_COMPLETED, EventKind.TURN_COMPLETED),
        EventKind.AGENT_FINISHED,
    ]
    streamed = "".join(event.payload.get("delta", "") for event in heard.events)
    assert streamed == f"{LONG}louder"
    assert heard.committed == story.events


async def test_what_is_accepted_at_the_very_end_is_heard_and_the_rest_is_refused(
    crew: Fleet, client_of_crew: Client
) -> None:
    moments = [
        EventKind.RUN_QUEUED,
        EventKind.TURN_STARTED,
        EventKind.ASSISTANT_TEXT_DELTA,
        EventKind.TOOL_COMPLETED,
        EventKind.MESSAGE_COMPLETED,
        EventKind.AGENT_FINISHED,
    ]
    raced = await asyncio.gather(
        *(_race(crew, client_of_crew, n, moments[n % len(moments)]) for n in range(RACES))
    )
    assert set(raced) == {ControlStatus.ACCEPTED, ControlStatus.AGENT_IDLE}
    await check_rest(crew)


async def _race(fleet: Fleet, client: Client, number: int, moment: EventKind) -> ControlStatus:
    """Steer a run as soon as something is heard of it; return whether that was in time."""
    session = client.session(f"race-{number}", agent="clerk")
    async with hearing(fleet, session) as heard:
        handle = await session.run("[[tool look]] [[say done]]")
        await heard.until(moment)
        receipt = await session.steer(LOUDER)
        if receipt.accepted:
            await _heard_it(client, handle)
        else:
            assert (await handle.result(DEADLINE_S)).output == "done"
        await heard.until_ended(handle.run_id)
    assert heard.committed == (await Story.read(client, session.session_id)).events
    return receipt.status


async def test_many_words_at_the_very_end_are_each_heard_once(
    crew: Fleet, client_of_crew: Client
) -> None:
    """As fast as they can be said: nothing waits for anything but for receipts."""
    sessions = [client_of_crew.session(f"flood-{n}", agent="clerk") for n in range(10)]
    handles = [await session.run("[[say done]]") for session in sessions]
    accepted = await asyncio.gather(*map(_flood, sessions))
    for handle, input_ids in zip(handles, accepted, strict=True):
        result = await handle.result(DEADLINE_S)
        assert result.status is RunStatus.COMPLETED
        story = await Story.read(client_of_crew, handle.session_id)
        assert [body.input_id for body in story.all(SteeringApplied)] == input_ids
    await check_rest(crew)


async def _flood(session: Session) -> list[str]:
    """Speak until nobody listens any more, but no more than 40 times; return what was accepted."""
    accepted: list[str] = []
    for number in range(40):
        receipt = await session.steer(f"[[say {number}]]")
        if receipt.status is ControlStatus.AGENT_IDLE:
            break
        if receipt.input_id is not None:
            accepted.append(receipt.input_id)
    return accepted


@pytest.mark.parametrize("kill_at", ["after_claim", "after_run_started", "after_tool_ran"])
async def test_what_was_accepted_is_heard_once_by_the_next_attempt(
    fleet: Fleet, client: Client, kill_at: str
) -> None:
    session = client.session("s", agent="clerk")
    doomed = await fleet.start(kill_at=kill_at)
    if kill_at != "after_tool_ran":
        doomed.stop()
    handle = await session.run('[[tool hold_and_pay {"gate": "g"}]] [[say done]]')
    if kill_at == "after_tool_ran":
        await _until_in(fleet, session, "hold_and_pay")
    assert (await session.steer(LOUDER)).accepted
    fleet.open("g")
    doomed.resume()
    await doomed.ended()
    await fleet.start()
    story = await _heard_it(client, handle)
    kinds = [record.kind for record in story.records if record.branch_id == "main"]
    if story.all(AttemptStarted):
        assert kinds.index("attempt_started") < kinds.index("steering_applied")
    check_calls(fleet, [story])
    await check_rest(fleet)


async def test_an_abort_discards_what_was_not_heard(crew: Fleet, client_of_crew: Client) -> None:
    session = client_of_crew.session("aborted", agent="clerk")
    async with hearing(crew, session) as heard:
        handle = await session.run('[[tool hold {"gate": "never"}]]')
        await _until_in(crew, session, "hold")
        receipts = [await session.steer(text) for text in ("one", "two")]
        assert (await handle.abort("enough")).accepted
        late = await session.steer("three")
        result: AgentRunResult = await handle.result(DEADLINE_S)
        await heard.until_ended(handle.run_id)
    assert late.status in (ControlStatus.RUN_CLOSING, ControlStatus.AGENT_IDLE)
    assert (result.status, result.error) == (RunStatus.CANCELLED, "enough")
    story = await Story.read(client_of_crew, "aborted")
    discarded = story.all(SteeringDiscarded)
    assert [body.input_id for body in discarded] == [receipt.input_id for receipt in receipts]
    assert {body.reason for body in discarded} == {StopReason.EXTERNAL_ABORT}
    assert not story.all(SteeringApplied)
    assert heard.kinds()[-3:] == [
        *(EventKind.STEERING_DISCARDED, EventKind.STEERING_DISCARDED, EventKind.AGENT_FINISHED)
    ]
    await check_rest(crew)
