"""Which record may follow which in the life of a run. Pure: the table is the specification."""

from enum import StrEnum
from types import MappingProxyType
from typing import Final

from runlane.journal.errors import RunlaneError


class RunStage(StrEnum):
    """Where a run stands, by its records."""

    ABSENT = "absent"
    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"


class RecordOrderError(RunlaneError):
    """A record does not fit the run that it belongs to: the journal is damaged."""

    def __init__(self, *, run_id: str, stage: RunStage, kind: str) -> None:
        self.run_id = run_id
        self.stage = stage
        self.kind = kind
        super().__init__(f"run {run_id} is {stage}: no {kind} may follow")


_TABLE = {
    (RunStage.ABSENT, "run_queued"): RunStage.QUEUED,
    (RunStage.QUEUED, "abort_requested"): RunStage.QUEUED,
    (RunStage.QUEUED, "lease_stolen"): RunStage.QUEUED,
    (RunStage.QUEUED, "steering_discarded"): RunStage.QUEUED,
    (RunStage.QUEUED, "run_started"): RunStage.RUNNING,
    (RunStage.QUEUED, "run_continued"): RunStage.RUNNING,
    (RunStage.QUEUED, "run_finished"): RunStage.FINISHED,
    (RunStage.RUNNING, "abort_requested"): RunStage.RUNNING,
    (RunStage.RUNNING, "lease_stolen"): RunStage.RUNNING,
    (RunStage.RUNNING, "attempt_started"): RunStage.RUNNING,
    (RunStage.RUNNING, "message_appended"): RunStage.RUNNING,
    (RunStage.RUNNING, "messages_appended"): RunStage.RUNNING,
    (RunStage.RUNNING, "steering_applied"): RunStage.RUNNING,
    (RunStage.RUNNING, "steering_discarded"): RunStage.RUNNING,
    (RunStage.RUNNING, "tool_started"): RunStage.RUNNING,
    (RunStage.RUNNING, "tool_completed"): RunStage.RUNNING,
    (RunStage.RUNNING, "run_finished"): RunStage.FINISHED,
}
RECORD_ORDER: Final = MappingProxyType(_TABLE)
"""(stage, kind of the next record) → stage after it; what is not here is refused."""


def advance(stage: RunStage, kind: str, run_id: str) -> RunStage:
    """Return the stage after a record.

    Raises:
        RecordOrderError: That record may not follow.
    """
    after = RECORD_ORDER.get((stage, kind))
    if after is None:
        raise RecordOrderError(run_id=run_id, stage=stage, kind=kind)
    return after
