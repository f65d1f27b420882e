"""Holding a lane: what may be appended, and what becomes of it when the holder loses it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.e2e.waiting import until
from tests.journal.builders import intent_of, outcome_of, result_of, said, started
from tests.journal.driving import Driver
from tests.journal.proxy import Proxy, proxy_to

from runlane.journal.errors import (
    InvalidInputError,
    ServerUnavailableError,
    SessionConflictError,
    SessionFencedError,
)
from runlane.journal.holds import HeldLane, hold_lane
from runlane.journal.ids import new_run_id
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.server import Server
from runlane.journal.wire.messages import UserMessage
from runlane.journal.wire.records import AnyBody, RunFinished
from runlane.journal.wire.results import StopReason
from runlane.journal.wire.tree import (
    BranchCreated,
    BranchIntent,
    Checkpoint,
    CompactionApplied,
    HistoryImported,
    LastRun,
    SummaryEntry,
)
from runlane.producer import Client, ControlStatus, Session


def compaction(text: str = "all of it, in short") -> CompactionApplied:
    summary = SummaryEntry(
        content=text,
        source="test",
        history_start_index=0,
        first_kept_index=2,
        summarized_message_count=2,
        tokens_before=10,
    )
    return CompactionApplied(operation_id="o", summary=summary, messages=(UserMessage(text),))


def whole_run(stop_reason: StopReason = StopReason.TEXT_RESPONSE) -> tuple[str, list[AnyBody]]:
    """Return a run that was executed elsewhere: its id, and all its records."""
    run_id = new_run_id()
    lease = Lease(run_id=run_id, session_id="s", branch_id="main", queue="a", fence="", attempt=1)
    asked = said(lease, calls=["look"])
    bodies: list[AnyBody] = [started(lease), asked, intent_of(asked, 0), outcome_of(asked, 0)]
    end = RunFinished(run_id=run_id, branch_id="main", result=result_of(stop_reason))
    return run_id, [*bodies, said(lease, 2), end]


async def test_what_is_appended_is_what_the_branch_says(session: Session, driver: Driver) -> None:
    async with session.hold() as held:
        before = held.head
        head = await held.append(compaction("first"))
        assert held.head == head != before
        assert (await held.checkout()).messages == [UserMessage("first")]
        await held.append(compaction("second"))
    assert await session.messages() == [UserMessage("second")]
    await driver.check(quiescent=True)


async def test_whole_runs_can_be_appended_and_continued(session: Session) -> None:
    async with session.hold() as held:
        _, bodies = whole_run()
        await held.append(*bodies)
        run_id, bodies = whole_run(StopReason.MAX_STEPS)
        await held.append(*bodies)
    checkout = await session.checkout()
    assert checkout.last_run == LastRun(run_id, StopReason.MAX_STEPS)
    assert checkout.open_run is None
    assert (await session.status()).last_run == run_id
    assert (await session.continue_run()).run_id


async def test_an_imported_history_stands_for_what_came_before(
    session: Session, driver: Driver
) -> None:
    history = HistoryImported(format="test", document="{}", messages=(UserMessage("older"),))
    async with session.hold() as held:
        await held.append(history, compaction("newer"))
    assert await session.messages() == [UserMessage("newer")]
    await driver.check(quiescent=True)


async def test_a_checkpoint_must_say_what_the_branch_says(session: Session, driver: Driver) -> None:
    async with session.hold() as held:
        with pytest.raises(InvalidInputError, match="not what the records before it say"):
            await held.append(Checkpoint(messages=()))
        found = await held.checkout()
        head = await held.append(
            Checkpoint(messages=tuple(found.messages), last_run=found.last_run)
        )
    assert (await driver.lane())["checkpoint"] == head.partition("-")[0]
    await driver.check(quiescent=True)


@pytest.mark.parametrize(
    ("bodies", "why"),
    [
        ([], "nothing"),
        (whole_run()[1][:-1], "whole runs"),
        (whole_run()[1][1:], "do not fit"),
        ([*whole_run()[1][:1], *whole_run()[1]], "do not fit"),
        ([BranchCreated(intent=BranchIntent.FORK, source_branch_id="main")], "branch_created"),
        (
            [RunFinished(run_id="r", branch_id="side", result=result_of())],
            "of branch 'side'",
        ),
    ],
    ids=["nothing", "no end", "no start", "two at once", "a jump", "another branch"],
)
async def test_what_does_not_fit_is_refused(
    session: Session, driver: Driver, bodies: list[AnyBody], why: str
) -> None:
    async with session.hold() as held:
        async with driver.unchanged():
            with pytest.raises(InvalidInputError, match=why):
                await held.append(*bodies)
        await held.append(compaction())


async def test_the_lease_is_kept_for_as_long_as_the_block_lasts(
    driver: Driver, session: Session
) -> None:
    lease_ms = 600
    async with hold_lane(driver.partition, "s", "main", lease_ms=lease_ms, timeout=0) as held:
        run_id = (await session.run("hi")).run_id
        key = driver.keys.queue("@hold")
        ends = {await driver.partition.call("ZSCORE", key, held.run_id)}
        while len(ends) < 5:  # renewed four times: longer than a lease
            assert (await driver.claim()).runs == ()
            ends.add(await driver.partition.call("ZSCORE", key, held.run_id))
            await asyncio.sleep(0.01)
        await held.append(compaction())
    assert (await driver.lease()).run_id == run_id


@asynccontextmanager
async def losing(session: Session) -> AsyncGenerator[HeldLane]:
    """Hold a lane within a block that loses it."""
    with pytest.raises(SessionFencedError):
        async with session.hold() as held:
            yield held


async def taken_away(session: Session, driver: Driver, held: HeldLane) -> None:
    """A run goes on in the lane; nothing that the holder writes is accepted."""
    handle = await session.run("hi")
    lease = await driver.lease()
    assert lease.run_id == handle.run_id
    async with driver.unchanged():
        with pytest.raises(SessionFencedError):
            await held.append(compaction())
    await driver.begin(lease)
    await driver.finish(lease)


async def test_a_stolen_lane_is_lost_and_the_end_of_the_block_says_so(
    session: Session, driver: Driver
) -> None:
    async with losing(session) as held:
        assert (await session.steal()).accepted
        await taken_away(session, driver, held)
    await driver.check(quiescent=True)


async def test_an_aborted_hold_is_lost_and_the_end_of_the_block_says_so(
    session: Session, driver: Driver
) -> None:
    async with losing(session) as held:
        receipt = await session.abort()
        assert (receipt.run_id, receipt.accepted) == (held.run_id, True)
        await taken_away(session, driver, held)
    await driver.check(quiescent=True)


async def test_an_error_of_the_block_passes_and_the_lane_goes_on(
    session: Session, driver: Driver
) -> None:
    with pytest.raises(LookupError):
        async with session.hold():
            raise LookupError
    assert (await session.status()).active_run is None
    await driver.check(quiescent=True)


async def test_a_cancelled_block_lets_the_lane_go(session: Session, driver: Driver) -> None:
    inside = asyncio.Event()

    async def hold() -> None:
        async with session.hold():
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(hold())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await driver.check(quiescent=True)


async def test_stealing_needs_somebody_who_holds(session: Session, client: Client) -> None:
    assert (await session.steal()).status is ControlStatus.AGENT_IDLE
    await session.run("hi")
    assert (await session.steal()).status is ControlStatus.AGENT_IDLE
    with pytest.raises(InvalidInputError):
        await session.steal(" ")


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with proxy_to(server.port) as opened:
        yield opened


@pytest.fixture
async def near(proxy: Proxy, driver: Driver) -> AsyncIterator[Partition]:
    """The deployment, seen through the proxy, without a second try."""
    partition = Partition(proxy.url, prefix=driver.prefix, retry_s=0)
    yield partition
    await partition.close()


async def test_records_of_which_nothing_is_known_can_be_given_again(
    proxy: Proxy, near: Partition, session: Session
) -> None:
    async with hold_lane(near, "s", "main", lease_ms=60_000, timeout=0) as held:
        await held.append(compaction("first"))
        proxy.losing = True
        with pytest.raises(ServerUnavailableError):
            await held.append(compaction("once"))
        assert proxy.lost == 1
        stored = await session.head()
        assert stored != held.head
        assert await again(held, compaction("once")) == stored
        await again(held, compaction("twice"))
    texts = [r.body async for r in session.records() if isinstance(r.body, CompactionApplied)]
    assert [body.summary.content for body in texts] == ["first", "once", "twice"]


async def test_other_records_after_an_unknown_outcome_conflict_until_the_branch_is_read_anew(
    proxy: Proxy, near: Partition, session: Session
) -> None:
    async with hold_lane(near, "s", "main", lease_ms=60_000, timeout=0) as held:
        await held.append(compaction("first"))
        proxy.losing = True
        with pytest.raises(ServerUnavailableError):
            await held.append(compaction("once"))
        with pytest.raises(SessionConflictError):
            await again(held, compaction("twice"))
        assert (await held.checkout()).messages == [UserMessage("once")]
        await held.append(compaction("once"))
    texts = [r.body async for r in session.records() if isinstance(r.body, CompactionApplied)]
    assert [body.summary.content for body in texts] == ["first", "once", "once"]


async def again(held: HeldLane, *bodies: AnyBody) -> str:
    """Append over a connection that was just lost: the first try may find that out."""
    heads: list[str] = []

    async def appended() -> bool:
        try:
            heads.append(await held.append(*bodies))
        except ServerUnavailableError:
            return False
        return True

    await until(appended, "the server is there again")
    return heads[0]
