"""archive_claim and archive_release: which sessions are due, and whose they are."""

from tests.journal.driving import Driver
from tests.upkeep.support import HOUR_MS, Keeper

from runlane.journal.ids import new_request_id
from runlane.journal.transitions import archive_release


async def test_a_checkpoint_makes_a_session_due(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace("plain", checkpoint=False)
    await keeper.trace("s", checkpoint=True)
    (claim,) = await keeper.claim()
    assert (claim.session_id, claim.trimmed, claim.archived, claim.segment) == ("s", 0, 0, None)
    assert claim.upto == 4
    assert (await keeper.session())["archive_fence"] == claim.token
    await driver.check(quiescent=True)


async def test_a_session_is_looked_at_when_it_may_be_cold(driver: Driver, keeper: Keeper) -> None:
    before = await keeper.now_ms()
    await keeper.trace(checkpoint=False)
    after = await keeper.now_ms()
    assert before + HOUR_MS <= (await keeper.due())["s"] <= after + HOUR_MS
    await keeper.trace(checkpoint=False)
    assert (await keeper.due())["s"] <= after + HOUR_MS


async def test_a_lane_keeps_its_records_from_its_last_checkpoint_on(
    driver: Driver, keeper: Keeper
) -> None:
    await keeper.trace(checkpoint=True)
    await keeper.trace(checkpoint=True)
    await keeper.trace(checkpoint=False)
    assert (await keeper.claim_one()).upto == 9
    assert (await driver.lane())["checkpoint"] == "10"


async def test_a_lane_without_a_checkpoint_keeps_its_own_records(
    driver: Driver, keeper: Keeper
) -> None:
    lease = await keeper.trace(checkpoint=True)
    end = (await driver.run(lease.run_id))["end"]
    head = await driver.branch("side", base=end)
    await keeper.trace(branch="side", checkpoint=False)
    await keeper.trace(checkpoint=True)
    (claim,) = await keeper.claim()
    assert claim.upto == int(head.partition("-")[0]) - 1
    await driver.promote("side")
    assert (await keeper.claim_one("s", worker="w2")).upto == claim.upto


async def test_an_idle_lane_keeps_nothing_once_it_is_cold(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    await keeper.trace(checkpoint=False)
    driver.partition.cold_ms = 0
    assert (await keeper.claim_one()).upto == 9
    assert (await keeper.session())["rev"] == "9"


async def test_an_active_lane_keeps_its_records_however_old_they_are(
    driver: Driver, keeper: Keeper
) -> None:
    await keeper.trace(checkpoint=True)
    await driver.submit()
    driver.partition.cold_ms = 0
    assert (await keeper.claim_one()).upto == 4


async def test_a_session_that_may_give_nothing_is_put_off(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=False)
    head_at = (await driver.records())[-1].at_ms
    await keeper.make_due()
    assert await keeper.claim() == []
    assert (await keeper.due())["s"] == head_at + HOUR_MS
    await driver.submit()
    await keeper.make_due()
    before = await keeper.now_ms()
    assert await keeper.claim() == []
    assert (await keeper.due())["s"] >= before + HOUR_MS
    assert "archive_fence" not in await keeper.session()


async def test_a_claimed_session_is_nobody_elses_until_its_lease_ends(
    driver: Driver, keeper: Keeper
) -> None:
    await keeper.trace(checkpoint=True)
    (claim,) = await keeper.claim()
    assert await keeper.claim("w2") == []
    await keeper.trace(checkpoint=True)  # a checkpoint makes it due again only when it is back
    assert await keeper.claim("w2") == []
    taken = await keeper.claim_one(worker="w2")
    assert taken.token != claim.token
    assert taken.upto == 9
    async with driver.unchanged():
        assert not await archive_release(driver.partition, claim)
    assert driver.last.code == "FENCED"
    assert await archive_release(driver.partition, taken)


async def test_a_session_that_is_given_back_is_due_when_it_may_give_more(
    driver: Driver, keeper: Keeper
) -> None:
    await keeper.trace(checkpoint=True)
    (claim,) = await keeper.claim()
    assert await archive_release(driver.partition, claim)
    assert (await keeper.due())["s"] <= await keeper.now_ms()
    await keeper.archive()
    assert (await keeper.due())["s"] == (await driver.records())[-1].at_ms + HOUR_MS
    await keeper.archive_all()
    assert await keeper.due() == {}
    await driver.submit()
    assert (await keeper.due())["s"] > await keeper.now_ms()


async def test_the_same_request_again_returns_the_same_sessions(
    driver: Driver, keeper: Keeper
) -> None:
    for session in ("s", "t", "u"):
        await keeper.trace(session, checkpoint=True)
    claims = await keeper.claim(count=2)
    sent = driver.last
    assert len(claims) == 2
    async with driver.unchanged():
        assert await driver.partition.resend(sent) == sent.reply
    await keeper.claim_one(claims[0].session_id, worker="w2")
    (again,) = await driver.partition.resend(sent)
    assert [session.decode() for session, *_ in again] == [claims[1].session_id]
    await archive_release(driver.partition, claims[1])
    sent = driver.last
    async with driver.unchanged():
        assert (await driver.partition.resend(sent))[0] == b"FENCED"


async def test_what_is_no_session_any_more_is_taken_off_the_list(
    driver: Driver, keeper: Keeper
) -> None:
    await keeper.make_due("never")
    await keeper.trace(checkpoint=True)
    await driver.partition.call("HSET", driver.keys.session("s"), "state", "deleting")
    assert await keeper.claim() == []
    assert await keeper.due() == {}


async def test_the_first_revision_of_a_reborn_session_is_where_it_begins(
    driver: Driver, keeper: Keeper
) -> None:
    await driver.partition.call("HSET", driver.keys.deleted(), "s", 100)
    await keeper.trace(checkpoint=True)
    (claim,) = await keeper.claim()
    assert (claim.trimmed, claim.archived, claim.upto) == (100, 100, 104)
    assert claim.token.partition(":")[0] == "1"
    assert len(claim.token.partition(":")[2]) == len(new_request_id())


async def test_sessions_that_may_give_nothing_hide_no_other(driver: Driver, keeper: Keeper) -> None:
    for number in range(20):
        await driver.submit(session=f"waits-{number}", agent="b")
        await keeper.make_due(f"waits-{number}")
    await keeper.trace(checkpoint=True)
    (claim,) = await keeper.claim(count=1)
    assert claim.session_id == "s"
