"""append: all records or none, by the holder of the fence alone, each request once."""

import pytest
from msgspec.structs import replace
from tests.journal.builders import delta, intent_of, outcome_of, said, started, taken_over
from tests.journal.driving import Driver

from runlane.journal.errors import BlobMissingError, SessionConflictError, SessionFencedError
from runlane.journal.reader import event_of_message, record_of_message
from runlane.journal.wire.codec import chain_hash, encode_body


async def test_records_are_chained_to_the_head(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    head = await driver.append(lease, [said(lease, 1), said(lease, 2)])
    _, start, first, second = await driver.records()
    assert (start.parent_id, first.parent_id, second.parent_id) == (
        "",
        start.record_id,
        first.record_id,
    )
    assert second.record_id == head
    digest = head.rpartition(".")[2]
    parent = first.record_id.rpartition(".")[2]
    assert digest == chain_hash(parent, "main", *encode_body(said(lease, 2)))
    await driver.check()


async def test_a_stale_head_writes_nothing(driver: Driver) -> None:
    lease = await driver.held()
    stale = await driver.begin(lease)
    head = await driver.append(lease, [said(lease)])
    async with driver.unchanged():
        for wrong in (stale, "", head[:-1] + "_"):
            with pytest.raises(SessionConflictError) as refused:
                await driver.append(lease, [said(lease, 2)], head=wrong)
            assert (refused.value.head, refused.value.head_found) == (wrong, head)


@pytest.mark.parametrize("forged", ["", "1:", "1:0000", "0", "2:{nonce}"])
async def test_another_fence_writes_nothing(driver: Driver, forged: str) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    held = lease.fence
    other = replace(lease, fence=forged.format(nonce=held.partition(":")[2]))
    async with driver.unchanged():
        with pytest.raises(SessionFencedError) as refused:
            await driver.append(other, [said(lease)])
    assert refused.value.fence_held == held


async def test_a_run_that_is_not_the_active_one_writes_nothing(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    waiting = (await driver.submit()).run_id
    async with driver.unchanged():
        with pytest.raises(SessionFencedError):
            await driver.append(replace(lease, run_id=waiting), [said(lease)])


async def test_the_same_request_again_is_recognised_whatever_came_in_between(
    driver: Driver,
) -> None:
    lease = await driver.held()
    head = await driver.begin(lease)
    sent, at_ms = driver.last, driver.last.reply[3]
    await driver.submit()
    async with driver.unchanged():
        assert await driver.partition.resend(sent) == [b"DUP", head.encode(), b"", at_ms]
    await driver.abort(lease.run_id, "enough")
    async with driver.unchanged():
        assert await driver.partition.resend(sent) == [b"DUP", head.encode(), b"enough", at_ms]
    await driver.hand_back(lease)
    async with driver.unchanged():
        assert (await driver.partition.resend(sent))[:2] == [b"DUP", head.encode()]
    await driver.check()


async def test_a_reply_says_that_the_run_is_to_stop(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.abort(lease.run_id, "enough")
    await driver.append(lease, [said(lease)])
    assert driver.last.reply[2] == b"enough"


async def test_only_progress_forgives_crashes(driver: Driver) -> None:
    await driver.expire(await driver.held())
    lease = await driver.lease()
    head = await driver.begin(lease)
    assert (await driver.run(lease.run_id))["crashes_row"] == "1"
    await driver.append(lease, [taken_over(lease)], progress=False, head=head)
    assert (await driver.run(lease.run_id))["crashes_row"] == "1"
    await driver.append(lease, [said(lease)])
    run = await driver.run(lease.run_id)
    assert "crashes_row" not in run
    assert run["crashes"] == "1"


async def test_subscribers_hear_entries_in_their_order(driver: Driver) -> None:
    lease = await driver.held()
    await driver.checkout(lease)
    async with driver.hearing(driver.keys.events("s")) as heard:
        await driver.append(lease, [started(lease), delta(lease), said(lease), delta(lease)])
    assert [message[:1] for message in heard] == [b"R", b"P", b"R", b"P"]
    records = (await driver.records())[1:]
    assert [record_of_message(heard[index][1:]) for index in (0, 2)] == records
    assert [event_of_message(heard[index][1:]).revision for index in (1, 3)] == [2, 3]


async def test_events_alone_leave_the_head_where_it_is(driver: Driver) -> None:
    lease = await driver.held()
    checkout = await driver.checkout(lease)
    assert await driver.append(lease, [delta(lease)]) == checkout.head
    await driver.check()
    head = await driver.begin(lease)
    assert await driver.append(lease, [delta(lease)]) == head
    await driver.check()


async def test_a_large_record_is_announced_by_its_id(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    noise = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(20_000))
    async with driver.hearing(driver.keys.events("s")) as heard:
        head = await driver.append(lease, [said(lease, text=noise)])
    assert heard == [b"D" + head.rpartition(".")[0].encode()]


async def test_a_blob_counts_the_records_that_name_it(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    blob, other = await driver.put_blob(b"much"), await driver.put_blob(b"more")
    asked = said(lease, calls=["a", "b", "c"])
    await driver.append(lease, [asked, *(intent_of(asked, call) for call in range(3))])
    outcomes = [
        replace(outcome_of(asked, call), full=ref) for call, ref in enumerate([blob, other, blob])
    ]
    await driver.append(lease, [outcomes[0], delta(lease), outcomes[1]])
    sent = driver.last
    await driver.append(lease, [outcomes[2]])
    async with driver.unchanged():
        assert (await driver.partition.resend(driver.last))[0] == b"DUP"
        with pytest.raises(SessionConflictError):
            await driver.append(lease, outcomes[:1], head=sent.reply[1].decode())
    for ref, count in ((blob, "2"), (other, "1")):
        assert (await driver.fields(driver.keys.blob("s", ref.digest)))["refs"] == count
    await driver.check()


async def test_a_blob_that_is_not_there_stores_nothing(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    asked = said(lease, calls=["a", "b"])
    await driver.append(lease, [asked, intent_of(asked, 0), intent_of(asked, 1)])
    there, foreign = await driver.put_blob(b"much"), await driver.put_blob(b"more", session="t")
    outcomes = [
        replace(outcome_of(asked, call), full=ref) for call, ref in enumerate([there, foreign])
    ]
    async with driver.unchanged():
        with pytest.raises(BlobMissingError, match="nothing was written") as refused:
            await driver.append(lease, outcomes)
    assert (refused.value.session_id, refused.value.digest) == ("s", foreign.digest)


async def test_the_beginning_of_a_run_is_noted_once(driver: Driver) -> None:
    lease = await driver.held()
    begin = await driver.begin(lease)
    await driver.append(lease, [said(lease)])
    await driver.expire(lease)
    lease = await driver.lease("w2")
    await driver.checkout(lease)
    await driver.append(lease, [taken_over(lease)])
    assert (await driver.run(lease.run_id)).get("begin") == begin


async def test_a_checkpoint_in_a_run_is_where_a_checkout_begins(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    asked = said(lease, calls=["a"])
    await driver.append(lease, [asked, intent_of(asked, 0), outcome_of(asked, 0)])
    checkpoint = (await driver.project()).checkpoint()
    assert checkpoint is not None
    head = await driver.append(lease, [checkpoint])
    assert (await driver.lane()).get("checkpoint") == head.partition("-")[0]
    assert await driver.redis.zrange(driver.keys.archive(), 0, -1) == [b"s"]
    await driver.check()
