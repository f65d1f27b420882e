"""The proof that the tests of trimming bite: each broken script is noticed."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
from tests.journal.driving import Driver
from tests.journal.mutants import Mutant
from tests.journal.test_mutants import install
from tests.upkeep import test_trim
from tests.upkeep.support import Keeper

Test = Callable[[Driver, Keeper], Awaitable[None]]
MUTANTS: Final[tuple[tuple[Mutant, Test], ...]] = (
    (
        Mutant("what is not archived is dropped", "or upto > archived then", "then", ("trim",)),
        test_trim.test_what_is_not_archived_stays,
    ),
    (
        Mutant("a segment may leave a gap", "first ~= archived_before or", "", ("trim",)),
        test_trim.test_what_is_not_archived_stays,
    ),
    (
        Mutant("any archiver may trim", "held ~= ARGV[2]", "false", ("trim",)),
        test_trim.test_an_overtaken_archiver_is_refused,
    ),
    (
        Mutant("what a lane needs is dropped", "if upto >= kept", "if false", ("trim",)),
        test_trim.test_what_a_lane_needs_stays,
    ),
    (
        Mutant(
            "the stream is deleted",
            "redis.call('XTRIM', key('log', session), 'MINID', '=',",
            "redis.call('DEL', key('log', session)) redis.call('EXISTS',",
            ("trim",),
        ),
        test_trim.test_the_last_id_of_an_empty_stream_is_remembered,
    ),
)


@pytest.mark.parametrize(("mutant", "test"), MUTANTS, ids=[mutant.says for mutant, _ in MUTANTS])
async def test_a_broken_script_is_noticed(
    mutant: Mutant,
    test: Test,
    driver: Driver,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(mutant, monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await test(driver, Keeper(driver, store))
