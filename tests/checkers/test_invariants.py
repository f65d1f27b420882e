"""The checker itself: a sound keyspace passes, and each damage is reported by its rule."""

import pytest
from tests.checkers.damages import DAMAGES, Damage
from tests.checkers.invariants import RULES, Rule, check_keyspace, violations
from tests.checkers.keyspace import kinds_of, read_keyspace
from tests.checkers.lane_rules import nothing_goes_on
from tests.checkers.scene import sound
from tests.journal.builders import said
from tests.journal.driving import Driver

from runlane.journal.keys import Keys

CASES = [(rule, *case) for rule, cases in DAMAGES.items() for case in cases]


async def test_a_sound_keyspace_passes(driver: Driver) -> None:
    await sound(driver)
    assert await violations(driver.redis, driver.prefix, quiescent=False) == []


@pytest.mark.parametrize(
    ("rule", "damage", "says"),
    CASES,
    ids=[f"{rule.__name__ if rule else 'reading'}-{says}" for rule, _, says in CASES],
)
async def test_a_damage_is_reported(
    driver: Driver, rule: Rule | None, damage: Damage, says: str
) -> None:
    await damage(await sound(driver))
    space = await read_keyspace(driver.redis, driver.prefix)
    found = list(rule(space)) if rule else space.faults
    assert [text for text in found if says in text], found


async def test_what_only_the_archive_has_is_not_missed(driver: Driver) -> None:
    scene = await sound(driver)
    log, blob = driver.keys.log("tree"), driver.keys.blob("tree", scene.blob)
    for record in await driver.records("tree"):
        await scene.call("XTRIM", log, "MINID", record.revision + 1)
        await scene.call("HSET", driver.keys.session("tree"), "trimmed", record.revision)
        if record.kind == "tool_completed":
            await scene.call("HINCRBY", blob, "refs", -1)
            await scene.call("ZADD", driver.keys.orphans(), 1, f"tree/{scene.blob}")
        assert await violations(driver.redis, driver.prefix, quiescent=False) == []


def test_each_rule_can_fail() -> None:
    assert set(DAMAGES) == {None, *RULES, nothing_goes_on}


async def test_what_is_reported_fails_the_check_with_its_text(driver: Driver) -> None:
    scene = await sound(driver)
    with pytest.raises(AssertionError, match=r"(?s)violations under .* at rest"):
        await check_keyspace(driver.redis, driver.prefix, quiescent=True)
    await scene.call("DEL", driver.keys.log("q"))
    with pytest.raises(AssertionError, match="session q: listed True"):
        await check_keyspace(driver.redis, driver.prefix, quiescent=False)


async def test_another_deployment_on_the_server_is_not_looked_at(driver: Driver) -> None:
    await driver.completed()
    await driver.partition.call("SET", f"{driver.prefix}x:{{p0}}:stray", "x")
    await driver.check(quiescent=True)


async def test_a_long_journal_is_read_to_its_end(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.append(lease, [said(lease, turn) for turn in range(1, 2000)])
    space = await read_keyspace(driver.redis, driver.prefix)
    assert len(space.logs["s"]) == 2001
    await driver.check()


def test_the_kinds_of_keys_are_those_of_the_key_functions() -> None:
    kinds = kinds_of(Keys.of("p"))
    assert set(kinds.values()) == {"hash", "zset", "set", "list", "string", "stream"}
    assert (kinds["run:"], kinds["log:"], kinds["meta"], kinds["dead"]) == (
        "hash",
        "stream",
        "hash",
        "zset",
    )
