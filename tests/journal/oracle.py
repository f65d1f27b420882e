"""What lanes are to do, in plain Python: no server, no scripts, no time."""

from collections.abc import Collection
from dataclasses import dataclass, field
from math import ceil

from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.lease import Lease
from runlane.journal.transitions.steer import CAPACITY
from runlane.journal.wire.jobs import AnyJob, FollowUpFailurePolicy, FollowUpJob
from runlane.journal.wire.results import CONTINUABLE, RunStatus, StopReason

Place = tuple[str, str]

WORKERS = ("w1", "w2", "w3")
CRASHES_MAX = 2
CRASHES_TOTAL_MAX = 4


@dataclass
class OracleRun:
    """A run; `due` says that a claim may take it, be it held or not."""

    run_id: str
    place: Place
    policy: FollowUpFailurePolicy
    state: str = "queued"
    stop_reason: str = ""
    due: bool = False
    attempt: int = 0
    begun: bool = False
    crashes: int = 0
    crashes_row: int = 0
    cause: str = ""
    abort: bool = False
    worker: str = ""
    inputs: list[str] = field(default_factory=list[str])

    @property
    def held(self) -> bool:
        return self.state in ("leased", "running")

    @property
    def ended(self) -> bool:
        return self.state in set(RunStatus)

    @property
    def exhausted(self) -> bool:
        return self.left <= 0

    @property
    def left(self) -> int:
        """Crashes that it may have yet."""
        return min(CRASHES_MAX - self.crashes_row, CRASHES_TOTAL_MAX - self.crashes)


@dataclass
class OracleLane:
    """A lane; `fence` is empty while nobody holds it."""

    active: str = ""
    fence: str = ""
    head: str = ""
    follow_ups: list[str] = field(default_factory=list[str])
    inbox: list[str] = field(default_factory=list[str])
    last_stop: StopReason | None = None

    @property
    def no_continue(self) -> str:
        """Why nothing can be continued here; empty if it can."""
        if self.active:
            return "AGENT_ACTIVE"
        if self.last_stop is None:
            return "NO_PREVIOUS_RUN"
        return "" if self.last_stop in CONTINUABLE else "NOT_CONTINUABLE"


class Oracle:
    """All lanes of a deployment with one agent; each method answers with the code to expect."""

    def __init__(self) -> None:
        self.runs: dict[str, OracleRun] = {}
        self.lanes: dict[Place, OracleLane] = {}
        self.keys: dict[tuple[str, str], AnyJob] = {}
        self.suspects: dict[str, OracleRun] = {}
        self.branches: set[Place] = set()

    def lane(self, place: Place) -> OracleLane:
        return self.lanes.setdefault(place, OracleLane())

    def submit(self, job: AnyJob, key: str | None) -> str:
        place = job.session_id, job.branch_id
        known = self.keys.get((job.session_id, key or ""))
        if known is not None:
            return "EXISTS" if _same_body(known, job) else "IDEMPOTENCY_CONFLICT"
        if job.branch_id != MAIN_BRANCH and place not in self.branches:
            return "UNKNOWN_BRANCH"
        lane = self.lane(place)
        follow_up = isinstance(job, FollowUpJob)
        if follow_up and not lane.active:
            return "AGENT_IDLE"
        if _intent(job) == "continue" and (refusal := lane.no_continue):
            return refusal
        policy = FollowUpFailurePolicy.CONTINUE
        if isinstance(job, FollowUpJob):
            policy = job.failure_policy
        run = self.runs[job.run_id] = OracleRun(job.run_id, place, policy)
        if key:
            self.keys[job.session_id, key] = job
        if lane.active:
            (lane.follow_ups if follow_up else lane.inbox).append(run.run_id)
        else:
            lane.active, run.due = run.run_id, True
        return "OK"

    def claimable(self, slots: int) -> tuple[set[str], int]:
        """Return the runs that a claim may name, and how many of them it must name."""
        due = {run.run_id for run in self.runs.values() if run.due}
        share = min(slots, max(ceil(len(due) / len(WORKERS)), 1))
        return due, min(share, len(due))

    def last_chances(self) -> set[str]:
        """Return the due runs that have one crash left once a claim has counted the last one."""
        due = [run for run in self.runs.values() if run.due and not run.abort]
        return {run.run_id for run in due if run.left - run.held == 1}

    def holds_suspect(self, worker: str) -> bool:
        run = self.suspects.get(worker)
        return run is not None and run.worker == worker and run.left == 1

    def claimed(self, run_id: str, worker: str, fence: str = "") -> OracleRun | None:
        """Note that a claim named a run; return it, or None if it had too many crashes."""
        if run_id in self.last_chances():
            self.suspects[worker] = self.runs[run_id]
        run, lane = self.runs[run_id], self.lane(self.runs[run_id].place)
        if run.held:
            run.crashes += 1
            run.crashes_row += 1
            run.cause = "crash"
        run.due = False
        if run.exhausted:
            run.state, run.worker, lane.fence = "queued", "", ""
            return None
        run.attempt += 1
        run.state, run.worker, lane.fence = "leased", worker, fence
        return run

    def holds(self, lease: Lease) -> bool:
        lane = self.lane((lease.session_id, lease.branch_id))
        return lane.active == lease.run_id and lane.fence == lease.fence

    def checkout(self, lease: Lease) -> str:
        if not self.holds(lease):
            return "FENCED"
        run = self.runs[lease.run_id]
        run.state = "running"
        return "OK"

    def steer(self, place: Place) -> str:
        """Return the code to expect; an input that is accepted is to be noted by `steered`."""
        run = self.runs.get(self.lane(place).active)
        if run is None:
            return "AGENT_IDLE"
        if run.abort:
            return "RUN_CLOSING"
        return "QUEUE_FULL" if len(run.inputs) >= CAPACITY else "ACCEPTED"

    def steered(self, place: Place, input_id: str) -> OracleRun:
        run = self.runs[self.lane(place).active]
        run.inputs.append(input_id)
        return run

    def append(
        self,
        lease: Lease,
        head: str,
        *,
        begins: bool,
        progress: bool,
        settled: Collection[str] = (),
    ) -> str:
        if not self.holds(lease):
            return "FENCED"
        if head != self.lane((lease.session_id, lease.branch_id)).head:
            return "CONFLICT"
        run = self.runs[lease.run_id]
        run.begun = run.begun or begins
        if progress:
            run.crashes_row = 0
        run.inputs = [each for each in run.inputs if each not in settled]
        return "OK"

    def finish(
        self,
        lease: Lease,
        head: str,
        stop_reason: StopReason,
        *,
        begins: bool,
        settled: Collection[str],
    ) -> str:
        run = self.runs[lease.run_id]
        aborted = run.abort and stop_reason.status is not RunStatus.CANCELLED
        pending = not set(run.inputs).issubset(settled)
        writes = begins and not aborted and not pending
        written = self.append(lease, head, begins=writes, progress=False)
        if written != "OK":
            return written
        if aborted:
            return "ABORTED"
        if pending:
            return "PENDING"
        self._end(run, stop_reason)
        return "OK"

    def hand_back(self, lease: Lease) -> str:
        if not self.holds(lease):
            return "FENCED"
        run = self.runs[lease.run_id]
        run.state, run.worker, run.cause, run.due = "queued", "", "hand_back", True
        self.lane(run.place).fence = ""
        return "OK"

    def publish(self, lease: Lease) -> str:
        return "OK" if self.holds(lease) else "FENCED"

    def renew(self, lease: Lease) -> bool:
        if self.holds(lease):
            self.runs[lease.run_id].due = False
            return True
        return False

    def abort(self, run_id: str) -> str:
        run = self.runs[run_id]
        if run.ended:
            return "ENDED"
        if run.held:
            run.abort = True
        else:
            self._end(run, StopReason.EXTERNAL_ABORT)
        return "ACCEPTED"

    def settle(self, run_id: str, stop_reason: StopReason, fence: str) -> str:
        run = self.runs[run_id]
        lane = self.lane(run.place)
        if run.ended:
            return "ENDED"
        if lane.active == run_id and lane.fence != fence:
            return "HELD"
        self._end(run, stop_reason)
        return "OK"

    def _end(self, run: OracleRun, stop_reason: StopReason) -> None:
        lane = self.lane(run.place)
        run.state, run.stop_reason, run.due = stop_reason.status, stop_reason, False
        run.worker, run.abort, run.crashes_row, run.inputs = "", False, 0, []
        if lane.active != run.run_id:
            for waiting in (lane.follow_ups, lane.inbox):
                if run.run_id in waiting:
                    waiting.remove(run.run_id)
            return
        lane.active = lane.fence = ""
        if run.begun:
            lane.last_stop = stop_reason
        if stop_reason.status is not RunStatus.COMPLETED:
            for run_id in list(lane.follow_ups):
                if self.runs[run_id].policy is FollowUpFailurePolicy.DISCARD:
                    self._end(self.runs[run_id], StopReason.SUPERSEDED)
        if waiting := lane.follow_ups or lane.inbox:
            lane.active = waiting.pop(0)
            self.runs[lane.active].due = True


def _intent(job: AnyJob) -> str:
    return str(job.__struct_config__.tag)


def _same_body(one: AnyJob, other: AnyJob) -> bool:
    def body(job: AnyJob) -> tuple[str, ...]:
        details = getattr(job, "task", ""), getattr(job, "failure_policy", "")
        return job.branch_id, _intent(job), *details

    return body(one) == body(other)
