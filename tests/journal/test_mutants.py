"""The proof that the test of the lanes bites: each broken script is noticed."""

import pytest
from hypothesis import Phase, Verbosity, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.journal.lane_machine import LaneMachine
from tests.journal.mutants import MUTANTS, Mutant

from runlane.journal import partition
from runlane.journal.server import Server
from runlane.journal.transitions import renew


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.says for mutant in MUTANTS])
def test_a_broken_script_is_noticed(
    mutant: Mutant, bundled_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mutant.applies, "the scripts have changed: no text is replaced"
    monkeypatch.setattr(partition, "load", mutant.load)
    monkeypatch.setitem(renew.__globals__, "load", mutant.load)

    class Machine(LaneMachine):
        url = bundled_server.url

    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=200,
                stateful_step_count=50,
                phases=(Phase.generate,),
                database=None,
                derandomize=True,
                report_multiple_bugs=False,
                verbosity=Verbosity.quiet,
            ),
        )
