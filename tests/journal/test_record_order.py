"""The table of which record may follow which."""

from itertools import product

import pytest

from runlane.journal.record_order import RECORD_ORDER, RecordOrderError, RunStage, advance
from runlane.journal.wire.bodies import RunBody
from runlane.journal.wire.records import KINDS


@pytest.mark.parametrize(("stage", "kind"), list(product(RunStage, KINDS)))
def test_every_record_has_a_row_or_is_refused(stage: RunStage, kind: str) -> None:
    if (stage, kind) in RECORD_ORDER:
        assert advance(stage, kind, "r") is RECORD_ORDER[stage, kind]
        return
    with pytest.raises(RecordOrderError) as refused:
        advance(stage, kind, "r")
    assert (refused.value.run_id, refused.value.stage, refused.value.kind) == ("r", stage, kind)


def test_the_table_is_about_the_kinds_that_belong_to_runs() -> None:
    of_runs = {kind for kind, body in KINDS.items() if issubclass(body, RunBody)}
    assert {kind for _, kind in RECORD_ORDER} == of_runs


def test_nothing_leaves_finished() -> None:
    assert not [row for row in RECORD_ORDER if row[0] is RunStage.FINISHED]


@pytest.mark.parametrize("stage", RunStage)
def test_every_stage_reaches_finished(stage: RunStage) -> None:
    reached, before = {stage}, set[RunStage]()
    while reached != before:
        before = set(reached)
        reached |= {after for (row, _), after in RECORD_ORDER.items() if row in reached}
    assert RunStage.FINISHED in reached


def test_only_its_one_end_finishes_a_run() -> None:
    ends = {kind for (_, kind), after in RECORD_ORDER.items() if after is RunStage.FINISHED}
    assert ends == {"run_finished"}
