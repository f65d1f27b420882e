"""Following a run or a session: what is heard, where it begins and where it ends."""

import asyncio
from typing import Any

import pytest
from tests.producer.hand_worker import HandWorker
from tests.producer.support import all_of, first, listening, until_subscribed

from runlane.journal.wire.messages import ModelToolCall
from runlane.producer import (
    Client,
    EventKind,
    InvalidInputError,
    Session,
    StopReason,
    UnknownRunError,
)

K = EventKind
WHOLE_RUN = [K.RUN_QUEUED, K.AGENT_STARTED, K.MESSAGE_COMPLETED, K.AGENT_FINISHED]


async def test_a_run_is_followed_from_its_acceptance_to_its_end(
    session: Session, worker: HandWorker
) -> None:
    handle = await session.run("one")
    async with listening(handle.events()) as listener:
        await listener.until_kind(K.RUN_QUEUED)
        held = await worker.begin()
        call = ModelToolCall(id="c1", name="lookup")
        await held.stream(1, "let me ", "look")
        await held.say(1, "let me look", call)
        await held.use_tool(1, call)
        await held.append(held.event(K.TURN_STARTED, 2, {}))
        await held.stream(2, "it is ", "42")
        await held.say(2, "it is 42")
        await held.finish("it is 42")
        await listener.until_kind(K.AGENT_FINISHED)
    assert [event.kind for event in listener.heard] == [
        *(K.RUN_QUEUED, K.AGENT_STARTED),
        *(K.ASSISTANT_TEXT_DELTA, K.ASSISTANT_TEXT_DELTA, K.MESSAGE_COMPLETED),
        *(K.TOOL_STARTED, K.TOOL_COMPLETED, K.TURN_STARTED),
        *(K.ASSISTANT_TEXT_DELTA, K.ASSISTANT_TEXT_DELTA, K.MESSAGE_COMPLETED),
        K.AGENT_FINISHED,
    ]
    assert listener.text == "let me lookit is 42"
    assert {event.run_id for event in listener.heard} == {handle.run_id}
    replayed = await all_of(handle.events())
    assert replayed == listener.committed


async def test_a_run_that_is_over_ends_the_iterator_at_once(
    session: Session, worker: HandWorker
) -> None:
    before = await session.run("before")
    await worker.complete()
    handle = await session.run("one")
    await worker.complete()
    await session.run("after")
    async with asyncio.timeout(0.5):
        events = await all_of(handle.events())
    assert [event.kind for event in events] == WHOLE_RUN
    assert {event.run_id for event in events} == {handle.run_id} != {before.run_id}
    await until_subscribed(worker.partition, session, count=0)


async def test_every_cursor_of_a_run_goes_on_behind_it(
    session: Session, worker: HandWorker
) -> None:
    handle = await session.run("one")
    await worker.complete()
    events = await all_of(handle.events())
    for index, event in enumerate(events):
        assert await all_of(handle.events(event.cursor)) == events[index + 1 :]
    await session.run("two")
    (later,) = await first(1, session.events(events[-1].cursor))
    assert await all_of(handle.events(later.cursor)) == []


async def test_a_session_is_followed_across_its_branches(
    session: Session, worker: HandWorker
) -> None:
    async with listening(session.events()) as listener:
        await session.run("one")
        await worker.complete()
        await (await session.fork(name="draft")).run("two")
        await worker.complete()
        await listener.until_revision(9)
    assert listener.revisions == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [event.branch_id for event in listener.heard] == ["main"] * 4 + ["draft"] * 5
    for event in listener.committed[:-1]:
        rest = await first(9 - event.revision, session.events(event.cursor))
        assert rest == listener.committed[event.revision :]


async def test_a_cursor_that_the_journal_does_not_have_starts_anew(
    session: Session, worker: HandWorker
) -> None:
    handle = await session.run("one")
    await worker.complete()
    events = await all_of(handle.events())
    cursor = events[1].cursor
    assert cursor is not None
    place, _, _ = cursor.partition(".")
    number = place.partition("-")[0]
    for lost in (f"{place}.{'0' * 24}", f"{number}-7.{'a' * 24}", f"99-7.{'b' * 24}"):
        for source in (handle.events(lost), session.events(lost)):
            reset, *rest = await first(5, source)
            assert (reset.kind, reset.payload) == (K.JOURNAL_RESET, {"lost": lost})
            assert (reset.run_id, reset.cursor) == ("", None)
            assert rest == events


@pytest.mark.parametrize(
    "cursor",
    ["", "1", "1-2", "0-7.000000000000000000000000", "1-2.xyz", "1-2.0000", 5, "9" * 30, "\ud800"],
)
async def test_a_malformed_cursor_is_refused(session: Session, cursor: Any) -> None:
    handle = await session.run("one")
    for verb in (handle.events, session.events):
        with pytest.raises(InvalidInputError, match="cursor"):
            verb(cursor)


async def test_who_joins_within_a_turn_gets_its_text_so_far(
    session: Session, worker: HandWorker
) -> None:
    handle = await session.run("one")
    held = await worker.begin()
    await held.stream(1, "once ", "upon ")
    cursor = (await first(2, handle.events()))[1].cursor
    async with (
        listening(handle.events()) as run,
        listening(session.events()) as whole,
        listening(handle.events(cursor)) as resumed,
    ):
        for listener in (run, whole, resumed):
            await listener.until_kind(K.ASSISTANT_TEXT_DELTA)
            assert listener.text == "once upon "
            assert listener.heard[-1].payload == {"delta": "once upon ", "offset": 0}
        await held.stream(1, "a ", "time")
        await held.say(1, "once upon a time")
        for listener in (run, whole, resumed):
            await listener.until_kind(K.MESSAGE_COMPLETED)
            assert listener.text == "once upon a time"


async def test_who_joins_after_a_turn_gets_no_partial_text(
    session: Session, worker: HandWorker
) -> None:
    handle = await session.run("one")
    held = await worker.begin()
    await held.stream(1, "once")
    await held.say(1, "once")
    async with listening(handle.events()) as listener:
        await listener.until_kind(K.MESSAGE_COMPLETED)
        await held.stream(2, "more")
        await listener.until_kind(K.ASSISTANT_TEXT_DELTA)
    assert listener.text == "more"


async def test_text_that_was_missed_is_read_again(session: Session, worker: HandWorker) -> None:
    """A cursor on a record of another run tells nothing of the turn that is under way."""
    await session.run("one")
    held = await worker.begin()
    await (await session.fork(name="draft")).run("two")
    await held.stream(1, "once ", "upon ")
    cursor = (await first(4, session.events()))[3].cursor
    async with listening(session.events(cursor)) as listener:
        await until_subscribed(worker.partition, session)
        await held.stream(1, "a ", "time")
        await listener.until_kind(K.ASSISTANT_TEXT_DELTA)
        await held.stream(1, "!")
        await held.finish()
        await listener.until_kind(K.AGENT_FINISHED)
    assert listener.text == "once upon a time!"


async def test_another_attempt_begins_its_text_anew(session: Session, worker: HandWorker) -> None:
    handle = await session.run("one")
    async with listening(handle.events()) as listener:
        dead = await worker.begin()
        await dead.stream(1, "once upon")
        await listener.until_kind(K.ASSISTANT_TEXT_DELTA)
        queue = worker.partition.keys.queue(dead.lease.queue)
        await worker.partition.call("ZADD", queue, 1, handle.run_id)
        held = await worker.begin()
        await held.stream(1, "there was")
        await held.say(1, "there was")
        await held.finish()
        await listener.until_kind(K.AGENT_FINISHED)
    kinds = [event.kind for event in listener.heard]
    assert kinds[2:5] == [K.ASSISTANT_TEXT_DELTA, K.SUPERSEDED, K.ASSISTANT_TEXT_DELTA]
    assert [event.attempt for event in listener.heard][2:5] == [1, 2, 2]
    assert listener.text == "once uponthere was"


async def test_a_large_record_is_heard(session: Session, worker: HandWorker) -> None:
    handle = await session.run("one")
    content = "".join(chr(0x4E00 + index % 20_000) for index in range(30_000))
    async with listening(handle.events()) as listener:
        await listener.until_kind(K.RUN_QUEUED)
        held = await worker.begin()
        await held.say(1, content)
        await held.finish()
        await listener.until_kind(K.AGENT_FINISHED)
    assert [event.kind for event in listener.heard] == WHOLE_RUN
    assert listener.heard[2].payload["message"]["content"] == content


async def test_a_long_history_is_replayed_in_pages(
    session: Session, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runlane.producer.subscription.PAGE", 7)
    handle = await session.run("one")
    held = await worker.begin()
    for turn in range(1, 61):
        await held.say(turn, f"{turn}")
    await held.finish()
    events = await all_of(handle.events())
    assert [event.revision for event in events] == list(range(1, 64))


async def test_the_end_of_a_run_that_never_began(session: Session) -> None:
    handle = await session.run("one")
    async with listening(handle.events()) as listener:
        await listener.until_kind(K.RUN_QUEUED)
        await handle.abort("no more")
        await listener.until_kind(K.AGENT_FINISHED)
    assert [event.kind for event in listener.heard] == [
        *(K.RUN_QUEUED, K.ABORT_REQUESTED, K.AGENT_FINISHED)
    ]
    assert listener.heard[-1].payload["result"]["stop_reason"] == StopReason.EXTERNAL_ABORT


async def test_a_run_that_the_server_has_lost(session: Session, worker: HandWorker) -> None:
    handle = await session.run("one")
    await worker.partition.call("DEL", worker.partition.keys.run(handle.run_id))
    with pytest.raises(UnknownRunError):
        await all_of(handle.events())


async def test_a_closed_client_ends_its_iterators(settings: Any, worker: HandWorker) -> None:
    client = await Client.connect(settings=settings)
    session = client.session("s1", agent="support")
    handle = await session.run("one")
    listening_on = asyncio.create_task(first(2, session.events()))
    waiting = asyncio.create_task(handle.result())
    await until_subscribed(worker.partition, session)
    await client.close()
    for task in (listening_on, waiting):
        with pytest.raises(ConnectionError, match="closed"):
            await task
