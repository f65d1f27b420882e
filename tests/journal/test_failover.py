"""After a failover that lost records, numbers come back; records do not."""

import pytest
from tests.journal.builders import said
from tests.journal.driving import Driver
from tests.journal.failover import fail_over, take_snapshot
from tests.journal.mutants import Mutant
from tests.journal.test_mutants import install

from runlane.journal.errors import SessionConflictError

HEAD_BY_NUMBER = Mutant(
    "a head is a number",
    "found ~= ARGV[6]",
    "string.match(found, '^%d*') ~= string.match(ARGV[6], '^%d*')",
    ("append", "finish"),
)


async def lose_a_record(driver: Driver) -> None:
    """A writer builds on a record that is gone, and whose number another record has."""
    lease = await driver.held()
    begun = await driver.begin(lease)
    snapshot = await take_snapshot(driver.redis)
    lost = await driver.append(lease, [said(lease, text="lost")])
    await fail_over(driver.redis, snapshot)
    other = await driver.append(lease, [said(lease, text="other")], head=begun)
    assert lost.partition("-")[0] == other.partition("-")[0]
    with pytest.raises(SessionConflictError) as caught:
        await driver.append(lease, [said(lease, turn=2)], head=lost)
    assert (caught.value.head, caught.value.head_found) == (lost, other)
    await driver.check()


async def test_a_head_is_compared_by_what_it_says(driver: Driver) -> None:
    await lose_a_record(driver)


async def test_a_script_that_compares_numbers_is_noticed(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(HEAD_BY_NUMBER, monkeypatch)
    with pytest.raises(pytest.fail.Exception):
        await lose_a_record(driver)


async def test_the_ids_of_both_servers_differ(driver: Driver) -> None:
    lease = await driver.held()
    head = await driver.begin(lease)
    await fail_over(driver.redis, await take_snapshot(driver.redis))
    later = await driver.append(lease, [said(lease)], head=head)
    inc = [record_id.partition("-")[2].partition(".")[0] for record_id in (head, later)]
    assert inc[0] != inc[1]
