"""publish: deltas are heard from the holder of the lane alone."""

import pytest
from msgspec.structs import replace
from tests.journal.builders import delta
from tests.journal.driving import Driver

from runlane.journal.errors import SessionFencedError
from runlane.journal.reader import event_of_message
from runlane.journal.transitions import publish


async def test_events_are_heard_in_order_after_the_last_record(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.branch("side")
    await driver.submit(branch="side")
    events = [delta(lease, "a", 1), delta(lease, "b", 2)]
    async with driver.hearing(driver.keys.events("s")) as heard:
        await driver.publish(lease, *events)
    assert [message[:1] for message in heard] == [b"P", b"P"]
    assert [event_of_message(message[1:]) for message in heard] == [
        replace(event, revision=2) for event in events
    ]


async def test_text_is_kept_per_turn_for_a_while(driver: Driver) -> None:
    lease = await driver.held()
    await driver.checkout(lease)
    part = driver.keys.partial(lease.run_id)
    for text in ("Hel", "", "lo"):
        await driver.publish(lease, delta(lease), text=text)
    assert await driver.partition.call("GET", part) == b"1:1 Hello"
    assert 0 < await driver.partition.call("PTTL", part) <= 60_000
    await publish(driver.partition, lease, [delta(lease)], text="Next", turn=2)
    assert await driver.partition.call("GET", part) == b"1:2 Next"
    await driver.check()


async def test_a_later_attempt_starts_the_text_afresh(driver: Driver) -> None:
    lease = await driver.held()
    await driver.publish(lease, delta(lease), text="Hello")
    await driver.expire(lease)
    lease = await driver.lease("w2")
    await driver.publish(lease, delta(lease), text="Hi")
    assert await driver.partition.call("GET", driver.keys.partial(lease.run_id)) == b"2:1 Hi"


@pytest.mark.parametrize("forged", ["", "1:0000", "2:{nonce}"])
async def test_another_fence_is_not_heard(driver: Driver, forged: str) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    other = replace(lease, fence=forged.format(nonce=lease.fence.partition(":")[2]))
    async with driver.unchanged():
        with pytest.raises(SessionFencedError) as refused:
            await driver.publish(other, delta(lease), text="psst")
    assert refused.value.fence_held == lease.fence
