"""A worker that was given up, but lives on, is refused everywhere and harms nothing."""

from collections.abc import Awaitable, Callable

import pytest
from tests.journal.builders import delta, said, taken_over
from tests.journal.driving import Driver

from runlane.journal.errors import SessionFencedError
from runlane.journal.lease import Lease
from runlane.journal.wire.results import StopReason

Write = Callable[[Driver, Lease], Awaitable[object]]

WRITES: dict[str, Write] = {
    "checkout": lambda driver, lease: driver.checkout(lease),
    "append": lambda driver, lease: driver.append(lease, [said(lease, 9)]),
    "publish": lambda driver, lease: driver.publish(lease, delta(lease), text="late"),
    "finish": lambda driver, lease: driver.finish(lease),
    "abort's finish": lambda driver, lease: driver.finish(lease, StopReason.EXTERNAL_ABORT),
}


async def taken_by_another(driver: Driver, lease: Lease) -> None:
    await driver.expire(lease)
    new = await driver.lease("w2")
    await driver.checkout(new)
    await driver.append(new, [taken_over(new)], progress=False)


async def handed_back(driver: Driver, lease: Lease) -> None:
    await driver.hand_back(lease)


async def ended(driver: Driver, lease: Lease) -> None:
    await driver.finish(lease)


async def ended_and_followed(driver: Driver, lease: Lease) -> None:
    await driver.submit()
    await driver.finish(lease)
    await driver.begin(await driver.lease())


@pytest.mark.parametrize("lose", [taken_by_another, handed_back, ended, ended_and_followed])
async def test_the_old_holder_writes_nothing(
    driver: Driver, lose: Callable[[Driver, Lease], Awaitable[None]]
) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await lose(driver, lease)
    async with driver.unchanged():
        for write in WRITES.values():
            with pytest.raises(SessionFencedError):
                await write(driver, lease)
        assert not await driver.hand_back(lease)
        assert not await driver.settle(lease.run_id, fence=lease.fence)
    assert (await driver.renew(lease)).lost == (lease.run_id,)
    await driver.check()


async def test_a_lost_reply_of_the_old_holder_does_not_write_late(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.append(lease, [said(lease)])
    sent = driver.last
    await taken_by_another(driver, lease)
    async with driver.unchanged():
        assert (await driver.partition.resend(sent))[0] in (b"DUP", b"FENCED")
