"""The proof that the tests bite: each broken script is noticed."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import pytest
from hypothesis import Phase, Verbosity, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from tests.journal import test_reader
from tests.journal.driving import Driver, open_driver
from tests.journal.lane_machine import LaneMachine
from tests.journal.mutants import MUTANTS, Mutant
from tests.journal.transitions import (
    test_abort,
    test_append,
    test_branches,
    test_checkout,
    test_claim,
    test_finish,
    test_hold,
    test_keep_lost,
    test_release,
    test_settle,
    test_steal,
    test_steer,
    test_submit,
)

from runlane.journal import partition
from runlane.journal.errors import RunlaneError
from runlane.journal.link import client_for
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
        partial(test_submit.test_a_run_that_never_began_is_no_previous_run, checked_out=False)
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
    "a begun run ends beside its branch": test_settle.test_a_run_that_had_begun_ends_on_its_branch,
    "a run that never began ends on its branch": partial(
        test_settle.test_a_run_that_never_began_ends_beside_its_branch, checked_out=True
    ),
    "nobody notes where a run began": test_append.test_the_beginning_of_a_run_is_noted_once,
    "an ended run is known for ever": (
        test_finish.test_little_is_kept_of_an_ended_run_and_not_for_ever
    ),
    "an ended run keeps what it was": (
        test_finish.test_little_is_kept_of_an_ended_run_and_not_for_ever
    ),
    "the head is taken for the end": test_finish.test_a_checkpoint_may_follow_the_end,
    "subscribers hear what is stored": (
        test_reader.test_an_output_that_is_the_text_before_it_is_stored_once_and_always_read
    ),
    "a named blob is not counted": test_append.test_a_blob_counts_the_records_that_name_it,
    "a record names what is not there": test_append.test_a_blob_that_is_not_there_stores_nothing,
    "a checkpoint is not noted": (
        test_append.test_a_checkpoint_in_a_run_is_where_a_checkout_begins
    ),
    "a checkout does not begin at the checkpoint": (
        test_checkout.test_what_is_older_than_the_last_checkpoint_does_not_come
    ),
    "submit takes any branch": (
        test_submit.test_a_branch_must_exist_before_anything_is_asked_of_it
    ),
    "a closed session takes work": partial(
        test_submit.test_a_closed_session_takes_no_work, state="deleting"
    ),
    "create_branch does not know its request": partial(
        test_branches.test_the_same_request_again_gets_the_same_answer_whatever_came_in_between,
        act=test_branches.a_fork,
    ),
    "promote does not know its request": partial(
        test_branches.test_the_same_request_again_gets_the_same_answer_whatever_came_in_between,
        act=test_branches.a_promotion,
    ),
    "a branch is created twice": partial(
        test_branches.test_a_name_that_is_taken_is_refused, name="side"
    ),
    "a branch begins at nothing": (
        test_branches.test_a_branch_begins_with_a_record_whose_parent_is_its_base
    ),
    "main goes on from nothing": (test_branches.test_main_goes_on_from_the_head_of_another_branch),
    "a branch has no last run": (
        test_branches.test_a_branch_begins_with_a_record_whose_parent_is_its_base
    ),
    "a jump is not noted": test_branches.test_main_goes_on_from_the_head_of_another_branch,
    "promote takes any head": test_branches.test_main_that_has_moved_is_left_where_it_is,
    "promote does not ask who is at work": partial(
        test_branches.test_main_at_work_is_left_where_it_is, held=True
    ),
    "main keeps its checkpoint": (
        test_branches.test_main_forgets_its_checkpoint_when_it_goes_on_elsewhere
    ),
    "main keeps its last run": (test_branches.test_main_without_a_last_run_has_nothing_to_continue),
    "a stolen lane keeps its fence": (
        test_steal.test_nothing_that_the_old_worker_sends_is_accepted
    ),
    "steal does not know its request": (
        test_steal.test_the_same_request_again_does_not_take_it_from_the_next_worker
    ),
    "a lane is held out of turn": (
        test_hold.test_a_hold_waits_for_its_turn_in_the_order_of_acceptance
    ),
    "a silent holder keeps its lane": (
        test_hold.test_a_claim_drops_a_hold_whose_holder_is_silent_and_the_lane_goes_on
    ),
    "a lane does not go on after a hold": (
        test_release.test_the_next_run_goes_on_and_nothing_is_recorded
    ),
    "steer does not know its request": (
        test_steer.test_the_same_request_again_says_it_once_whatever_came_in_between
    ),
    "a hold is steered": test_steer.test_nothing_is_said_where_no_run_is_active,
    "a closing run is steered": test_steer.test_a_run_that_was_told_to_stop_hears_nothing_more,
    "there is room for everything": test_steer.test_no_more_waits_than_there_is_room_for,
    "an attempt is told what was said to another one": (
        test_steer.test_the_worker_is_told_what_was_said_and_in_which_attempt
    ),
    "what was heard still waits": test_steer.test_an_append_brings_what_waits_after_it,
    "what was heard is not forgotten": test_steer.test_an_append_brings_what_waits_after_it,
    "one input stands for all": test_steer.test_an_append_brings_what_waits_after_it,
    "an id stands for what it is part of": (
        test_steer.test_an_id_that_is_part_of_another_one_takes_nothing_out
    ),
    "a run ends without hearing": (
        test_steer.test_a_completed_run_does_not_end_while_somebody_is_to_be_heard
    ),
    "an abort waits for what is to be heard": (
        test_steer.test_an_accepted_abort_comes_before_what_was_said
    ),
    "nothing tells what came too late": partial(
        test_steer.test_a_run_that_ends_without_its_worker_discards_what_it_did_not_hear,
        end="abort",
        begun=True,
    ),
    "what came too late waits for ever": partial(
        test_steer.test_a_run_that_ends_without_its_worker_discards_what_it_did_not_hear,
        end="settle",
        begun=False,
    ),
    "a checkout brings nothing": (
        test_steer.test_a_checkout_brings_what_waits_and_a_crash_keeps_it
    ),
    "what was deleted is kept": test_keep_lost.test_what_was_deleted_on_purpose_is_not_lost,
    "keep_lost does not know its request": (
        test_keep_lost.test_the_same_request_again_changes_nothing
    ),
}
"""Mutants that hypothesis would need long for."""

OTHERS: Final = [mutant for mutant in MUTANTS if mutant.says not in NAMED_TESTS]


def install(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mutant.applies, "the scripts have changed: no text is replaced"
    monkeypatch.setattr(partition, "load", mutant.load)
    monkeypatch.setitem(renew.__globals__, "load", mutant.load)


def is_noticed_by(
    machine: type[RuleBasedStateMachine], *, max_examples: int, stateful_step_count: int
) -> None:
    """Assert that a machine comes upon something wrong."""
    with pytest.raises((AssertionError, pytest.fail.Exception, ExceptionGroup, RunlaneError)):
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=max_examples,
                stateful_step_count=stateful_step_count,
                phases=(Phase.generate,),
                database=None,
                derandomize=True,
                report_multiple_bugs=False,
                verbosity=Verbosity.quiet,
            ),
        )


@pytest.mark.parametrize("says", NAMED_TESTS)
async def test_a_broken_script_is_noticed_by_its_test(
    says: str, bundled_server: Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mutant,) = [mutant for mutant in MUTANTS if mutant.says == says]
    async with client_for(bundled_server.url) as redis:
        await redis.flushall()  # what tests before have left there expires meanwhile
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

    is_noticed_by(Machine, max_examples=100, stateful_step_count=50)
