"""What the demo sees of its runs: the material of the view and of the verdict."""

from dataclasses import dataclass, field

from msgspec import Struct

from runlane.journal.wire.events import Event, EventKind
from runlane.journal.wire.records import AttemptCause, Record
from runlane.journal.wire.results import AgentRunResult
from runlane.worker.demo.ledger import Entry

_BEGINNINGS = (EventKind.AGENT_STARTED, EventKind.AGENT_CONTINUED, EventKind.SUPERSEDED)


class Attempt(Struct, frozen=True, kw_only=True):
    """One worker began, or went on with, a run.

    Attributes:
        run_id: The run.
        worker_id: The worker.
        cause: Why it took over an unfinished run; None if it is the first to write of it.
        at_s: When its first record was heard, by the demo's own clock.
    """

    run_id: str
    worker_id: str
    cause: AttemptCause | None
    at_s: float


class Kill(Struct, frozen=True, kw_only=True):
    """A worker was killed.

    Attributes:
        worker_id: The worker.
        at_s: When, by the demo's own clock.
        held: The runs that it held.
        refund: Operation key of the refund that it was in the middle of; None if of none.
    """

    worker_id: str
    at_s: float
    held: tuple[str, ...]
    refund: str | None


class Drain(Struct, frozen=True, kw_only=True):
    """A worker was asked to stop.

    Attributes:
        worker_id: The worker.
        at_s: When, by the demo's own clock.
        exit_code: How it ended.
    """

    worker_id: str
    at_s: float
    exit_code: int


@dataclass
class SessionTrace:
    """One session.

    Attributes:
        session_id: The session.
        accepted: Its runs, in the order of their acceptance.
        results: What those that ended came to.
        events: The committed events that its subscriber heard, as they came.
        provisional_count: How many others it heard.
        attempts: Who began which run, as it was heard.
        holders: The worker of each run that has begun and not ended.
        records: The journal, read at the end.
        failure: Why the demo could not go on with it; empty if it could.
    """

    session_id: str
    accepted: list[str] = field(default_factory=list[str])
    results: dict[str, AgentRunResult] = field(default_factory=dict[str, AgentRunResult])
    events: list[Event] = field(default_factory=list[Event])
    provisional_count: int = 0
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    holders: dict[str, str] = field(default_factory=dict[str, str])
    records: list[Record] = field(default_factory=list[Record])
    failure: str = ""

    def hear(self, event: Event, at_s: float) -> None:
        """Take in what the subscriber heard."""
        if not event.committed:
            self.provisional_count += 1
            return
        self.events.append(event)
        if event.kind in _BEGINNINGS:
            attempt = _attempt_of(event, at_s)
            self.attempts.append(attempt)
            self.holders[event.run_id] = attempt.worker_id
        if event.terminal:
            self.holders.pop(event.run_id, None)

    def has_heard(self, kind: EventKind, run_id: str) -> bool:
        """Return whether the subscriber heard this of a run."""
        return any(event.kind is kind and event.run_id == run_id for event in self.events)


@dataclass
class Observed:
    """The whole demo.

    Attributes:
        scripted: Whether a script decides what the model says, so that it is known.
        sessions: All sessions.
        kill: The SIGKILL; None if there was none.
        drain: The SIGTERM; None if there was none.
        ledger: What really happened to the outside world.
        died: Workers that ended though nobody ended them.
    """

    scripted: bool
    sessions: list[SessionTrace]
    kill: Kill | None = None
    drain: Drain | None = None
    ledger: list[Entry] = field(default_factory=list[Entry])
    died: list[str] = field(default_factory=list[str])

    @property
    def attempts(self) -> list[Attempt]:
        """All attempts of all sessions."""
        return [attempt for trace in self.sessions for attempt in trace.attempts]

    @property
    def accepted_count(self) -> int:
        """Runs that were accepted."""
        return sum(len(trace.accepted) for trace in self.sessions)

    @property
    def ended_count(self) -> int:
        """Runs that ended."""
        return sum(len(trace.results) for trace in self.sessions)

    @property
    def event_count(self) -> int:
        """Events that were heard, provisional ones included."""
        return sum(len(trace.events) + trace.provisional_count for trace in self.sessions)

    @property
    def running_count(self) -> int:
        """Runs that have begun and not ended."""
        return sum(len(trace.holders) for trace in self.sessions)

    def held_by(self, worker_id: str) -> int:
        """Return how many runs a worker holds."""
        return sum(
            holder == worker_id for trace in self.sessions for holder in trace.holders.values()
        )

    def takeovers(self) -> dict[str, Attempt]:
        """Return, for each run of the killed worker, the first attempt of another one."""
        if self.kill is None:
            return {}
        found: dict[str, Attempt] = {}
        for attempt in self.attempts:
            if (
                attempt.run_id in self.kill.held
                and attempt.at_s > self.kill.at_s
                and attempt.worker_id != self.kill.worker_id
            ):
                found.setdefault(attempt.run_id, attempt)
        return found


def _attempt_of(event: Event, at_s: float) -> Attempt:
    cause = event.payload.get("cause")
    return Attempt(
        run_id=event.run_id,
        worker_id=event.payload["worker_id"],
        cause=None if cause is None else AttemptCause(cause),
        at_s=at_s,
    )
