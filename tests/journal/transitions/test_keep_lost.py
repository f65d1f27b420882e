"""keep_lost: records that the server had lost become a branch of their own, in one step."""

import pytest
from tests.journal.builders import said, started
from tests.journal.driving import Driver

from runlane.journal import tree
from runlane.journal.errors import BlobMissingError, BranchExistsError, SessionClosedError
from runlane.journal.ids import new_run_id
from runlane.journal.lease import Lease
from runlane.journal.transitions import keep_lost
from runlane.journal.transitions.entries import Written, chained
from runlane.journal.wire.records import RunFinished
from runlane.journal.wire.results import AgentRunResult, RunStatus, StopReason
from runlane.journal.wire.tree import BranchCreated, BranchIntent, Jump, LastRun

LOST = "lost-main-7"
ENDED = AgentRunResult(status=RunStatus.FAILED, stop_reason=StopReason.WORKER_LOST)


async def kept(
    driver: Driver,
    *,
    session: str = "s",
    base: str = "",
    blobs: str = "",
    revision: int = 5,
) -> str:
    """Keep a run that the server knows nothing of; return its id."""
    run_id = new_run_id()
    lease = Lease(run_id=run_id, session_id=session, branch_id=LOST, queue="a", fence="", attempt=1)
    jump = Jump(
        branch_id=LOST,
        base_id=base,
        base_branch_id="main" if base else "",
        source_branch_id="main",
        intent=BranchIntent.LOST,
    )
    end = RunFinished(run_id=run_id, branch_id=LOST, result=ENDED)
    created = BranchCreated(intent=BranchIntent.LOST, source_branch_id="main")
    written = chained(LOST, base, [created, started(lease), said(lease), end])
    last = written[-1]
    written[-1] = Written(last.kind, last.digest, last.data, blobs)
    await keep_lost(
        driver.partition,
        session,
        jump,
        written,
        request_id=run_id,
        agent="a",
        revision=revision,
        last_run=LastRun(run_id, StopReason.WORKER_LOST),
    )
    return run_id


async def test_a_branch_goes_on_from_what_the_server_has(driver: Driver) -> None:
    await driver.completed()
    base = driver.heads["s", "main"]
    run_id = await kept(driver, base=base)
    _, lost = await tree.list_branches(driver.partition, "s")
    assert (lost.branch_id, lost.base_id, lost.intent) == (LOST, base, BranchIntent.LOST)
    checkout = await tree.check_out(driver.partition, "s", LOST)
    assert checkout.last_run == LastRun(run_id, StopReason.WORKER_LOST)
    assert (await driver.submit("continue", branch=LOST)).created
    assert driver.heads["s", "main"] == await tree.read_head(driver.partition, "s", "main")
    await driver.check()


async def test_a_session_that_was_lost_as_well_is_there_again(driver: Driver) -> None:
    await kept(driver)
    assert (await driver.fields(driver.keys.session("s")))["agent"] == "a"
    assert await driver.redis.zscore(driver.keys.sessions(), "s") is not None
    await driver.check(quiescent=True)


async def test_the_same_request_again_changes_nothing(driver: Driver) -> None:
    await kept(driver)
    request = driver.last
    async with driver.unchanged():
        again = await driver.partition.resend(request)
    assert again == [b"DUP", request.reply[1]]


async def test_a_name_is_given_once(driver: Driver) -> None:
    await kept(driver)
    async with driver.unchanged():
        with pytest.raises(BranchExistsError):
            await kept(driver)


async def test_what_was_deleted_on_purpose_is_not_lost(driver: Driver) -> None:
    await driver.partition.call("HSET", driver.keys.deleted(), "s", 5)
    async with driver.unchanged():
        with pytest.raises(SessionClosedError, match="deleted"):
            await kept(driver, revision=5)
    await kept(driver, revision=6)


async def test_a_session_that_is_being_deleted_is_left_alone(driver: Driver) -> None:
    await driver.completed()
    await driver.partition.call("HSET", driver.keys.session("s"), "state", "deleting")
    async with driver.unchanged():
        with pytest.raises(SessionClosedError, match="deleting"):
            await kept(driver)


async def test_content_that_is_named_must_be_there(driver: Driver) -> None:
    await driver.completed()
    async with driver.unchanged():
        with pytest.raises(BlobMissingError):
            await kept(driver, blobs="ab")
