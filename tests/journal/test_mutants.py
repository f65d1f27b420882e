"""The proof that the tests bite: each broken script is noticed."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import pytest
from hypothesis import Phase, Verbosity, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.journal.driving import Driver, open_driver
from tests.journal.lane_machine import LaneMachine
from tests.journal.mutants import MUTANTS, Mutant
from tests.journal.transitions import (
    test_abort,
    test_append,
    test_claim,
    test_finish,
    test_settle,
    test_submit,
)

from runlane.journal import partition
from runlane.journal.errors import RunlaneError
from runlane.journal.server import Server
from runlane.journal.transitions import renew
from runlane.journal.wire.results import StopReason

Test = Callable[[Driver], Awaitable[None]]

NAMED_TESTS: Final[dict[str, Test]] = {
    "fences are compared by number": partial(
        test_append.test_another_fence_writes_nothing, forged="1:0000"
    ),
    "a fence is good for any run of its lane": (
        test_append.test_a_run_that_is_not_the_active_one_writes_nothing
    ),
    "an idempotency key takes any body": partial(
        test_submit.test_a_key_with_another_body_is_a_conflict, other={"task": "twice"}
    ),
    "follow-ups wait behind the inbox": test_submit.test_a_follow_up_precedes_the_inbox,
    "submit does not know its run": (
        test_submit.test_the_same_request_again_gets_the_same_answer_in_every_state
    ),
    "a run that never began is continued": (
        test_submit.test_a_run_that_never_began_is_no_previous_run
    ),
    "claim does not know its request": test_claim.test_the_same_request_again_names_the_same_runs,
    "a worker holds many runs on their last chance": (
        test_claim.test_a_worker_holds_one_run_on_its_last_chance
    ),
    "the inbox is a stack": test_finish.test_the_next_run_of_the_lane_becomes_due,
    "dependent follow-ups live on": partial(
        test_finish.test_a_follow_up_of_a_run_that_does_not_complete_ends_with_its_own_record,
        stop_reason=StopReason.MAX_STEPS,
    ),
    "all follow-ups are dependent": partial(
        test_finish.test_a_follow_up_of_a_run_that_does_not_complete_ends_with_its_own_record,
        stop_reason=StopReason.MAX_STEPS,
    ),
    "an abort does not win": test_finish.test_an_accepted_abort_wins_over_any_other_end,
    "a waiting run is settled and still waits": partial(
        test_abort.test_a_waiting_run_ends_and_the_active_one_does_not_notice, intent="run"
    ),
    "settle takes runs from their holders": test_settle.test_a_held_run_is_its_holders,
}
"""Mutants that hypothesis would need long for."""

OTHERS: Final = [mutant for mutant in MUTANTS if mutant.says not in NAMED_TESTS]


def install(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mutant.applies, "the scripts have changed: no text is replaced"
    monkeypatch.setattr(partition, "load", mutant.load)
    monkeypatch.setitem(renew.__globals__, "load", mutant.load)


@pytest.mark.parametrize("says", NAMED_TESTS)
async def test_a_broken_script_is_noticed_by_its_test(
    says: str, bundled_server: Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mutant,) = [mutant for mutant in MUTANTS if mutant.says == says]
    async with open_driver(bundled_server.url, prefix=prefix) as driver:
        await NAMED_TESTS[says](driver)
    async with open_driver(bundled_server.url, prefix=f"{prefix}-broken") as driver:
        install(mutant, monkeypatch)
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            await NAMED_TESTS[says](driver)


@pytest.mark.parametrize("mutant", OTHERS, ids=[mutant.says for mutant in OTHERS])
def test_a_broken_script_is_noticed_by_the_lanes(
    mutant: Mutant, bundled_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(mutant, monkeypatch)

    class Machine(LaneMachine):
        url = bundled_server.url

    with pytest.raises((AssertionError, ExceptionGroup, RunlaneError)):
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=100,
                stateful_step_count=50,
                phases=(Phase.generate,),
                database=None,
                derandomize=True,
                report_multiple_bugs=False,
                verbosity=Verbosity.quiet,
            ),
        )
