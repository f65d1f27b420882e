"""What a step asks of the server is the same, however much the session holds."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from tests.journal.builders import delta, intent_of, outcome_of, said
from tests.journal.driving import Driver

from runlane.journal.lease import Lease
from runlane.journal.transitions import checkout, steer

FEW: Final = 10
MANY: Final = 400
PAGE: Final = 20
WHOLE: Final = {"xrange", "xrevrange", "lrange", "smembers", "keys", "scan"}
"""Commands whose answer may be as long as what it is about."""

Step = Callable[[Lease, int], Awaitable[Any]]


async def commands_of(driver: Driver, step: Awaitable[Any]) -> Counter[str]:
    """Return how often a step has the server do what, inside of its scripts too."""
    redis = cast("Any", driver.redis)
    await redis.config_resetstat()
    await step
    stats = await redis.info("commandstats")
    return Counter({name.removeprefix("cmdstat_"): each["calls"] for name, each in stats.items()})


async def grow(driver: Driver, lease: Lease, turns: range) -> None:
    for turn in turns:
        asked = said(lease, turn, calls=["look"])
        intent = intent_of(asked, 0, effect="read_only")
        await driver.append(lease, [asked, intent, outcome_of(asked, 0)])


async def cost_of(driver: Driver, step: Step) -> Counter[str]:
    """Return what a step costs in a short session, after a look whether it does in a long one."""
    lease = await driver.held()
    await driver.begin(lease)
    await step(lease, 1)  # the server may learn its script here
    await grow(driver, lease, range(2, FEW))
    short = await commands_of(driver, step(lease, FEW))
    await grow(driver, lease, range(FEW + 1, MANY))
    assert await commands_of(driver, step(lease, MANY)) == short
    return short


async def test_an_append_reads_nothing_of_what_came_before(driver: Driver) -> None:
    async def append(lease: Lease, turn: int) -> None:
        await driver.append(lease, [said(lease, turn), delta(lease, "more")])

    cost = await cost_of(driver, append)
    assert cost["xadd"] == 1
    assert not cost.keys() & WHOLE


async def test_the_end_of_a_run_and_the_next_one_read_nothing_of_what_came_before(
    driver: Driver,
) -> None:
    async def end_and_submit(lease: Lease) -> None:
        await driver.finish(lease)
        await driver.submit()

    await driver.submit()
    costs: list[Counter[str]] = []
    for length in (1, FEW, MANY):
        lease = await driver.lease()
        await driver.begin(lease)
        await grow(driver, lease, range(1, length))
        costs.append(await commands_of(driver, end_and_submit(lease)))
    _, short, long = costs
    assert short == long
    assert not long.keys() & WHOLE


async def test_a_checkout_reads_one_page(driver: Driver) -> None:
    async def take(lease: Lease, turn: int) -> None:
        seen = await checkout(driver.partition, lease, page=PAGE)
        assert len(seen.entries) <= PAGE

    await cost_of(driver, take)


async def test_what_is_said_to_a_run_reads_nothing_of_what_came_before(driver: Driver) -> None:
    async def say(lease: Lease, turn: int) -> None:
        assert (await steer(driver.partition, lease.session_id, "main", "louder")).accepted

    assert not (await cost_of(driver, say)).keys() & WHOLE
