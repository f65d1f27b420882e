"""A run without a server: its journal is a list, and it can be cut anywhere."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from runlane.journal.errors import WriteRefusedError
from runlane.journal.projection import Projection
from runlane.journal.wire.blobs import BlobRef, pack_blob
from runlane.journal.wire.control import ControlInput
from runlane.journal.wire.events import KIND_OF_RECORD, EventKind
from runlane.journal.wire.messages import UserMessage
from runlane.journal.wire.records import (
    KIND_OF,
    AnyBody,
    AttemptCause,
    AttemptStarted,
    RunFinished,
    RunStarted,
)
from runlane.journal.wire.results import AgentRunResult  # noqa: TC001 (a field of a dataclass)
from runlane.journal.wire.tree import SteeringApplied
from runlane.worker import Agent, CancellationToken
from runlane.worker.loop.ending import Ending
from runlane.worker.loop.orchestrator import orchestrate
from runlane.worker.loop.session import HandBackSignal

BRANCH = "main"
RUN_ID = "run"


class CrashSignal(BaseException):
    """The worker process is dead."""


def crash_at(word: str, times: int) -> Callable[[str], None]:
    """Return a `step` at which the process dies when it gets to a place for the n-th time.

    Nothing more is done from there on, wherever the signal itself gets to.
    """
    seen = 0

    def step(place: str) -> None:
        nonlocal seen
        seen += word in ("anywhere", place)
        if seen >= times:
            raise CrashSignal(place)

    return step


@dataclass
class Journal:
    """The records of one session with one run.

    Attributes:
        commits: What was written together, oldest first.
        blobs: Content that is kept beside them, by digest.
    """

    commits: list[tuple[AnyBody, ...]] = field(default_factory=list[tuple[AnyBody, ...]])
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])

    @property
    def bodies(self) -> list[AnyBody]:
        return [body for commit in self.commits for body in commit]

    def project(self) -> Projection:
        projection = Projection()
        for body in self.bodies:
            projection.add(body)
        return projection


@dataclass
class MemoryRun:
    """Implements `RunSession`.

    Attributes:
        journal: What is kept over attempts.
        step: Called at each place where a process may die, with a word for it.
        draining: The worker stops.
        lease_lost: Nothing may be written, and no side effect may begin.
        abort_at_commit: A commit from this one on brings the news of an abort.
        blob_bytes_max: The largest content that `keep` takes.
        events: Provisional events, as they were emitted.
        said: Text of the model, as it came.
        steering: What was said to the run and is not journaled yet.
        elapsed_s: How long the run has gone on.
        trace: Kinds of events as a subscriber hears them, those of records included; deltas that
            follow each other once.
    """

    journal: Journal
    attempt: int = 1
    server_changed: bool = False
    step: Callable[[str], None] = lambda _: None
    draining: bool = False
    lease_lost: bool = False
    abort_at_commit: int | None = None
    blob_bytes_max: int = 1_000_000
    events: list[tuple[EventKind, int, Any]] = field(
        default_factory=list[tuple[EventKind, int, Any]]
    )
    said: list[str] = field(default_factory=list[str])
    steering: list[ControlInput] = field(default_factory=list[ControlInput])
    elapsed_s: float = 0.0
    trace: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.run_id = RUN_ID
        self.session_id = "session"
        self.agent_name = "agent"
        self.projection = self.journal.project()
        self.cancellation = CancellationToken()
        self.result: AgentRunResult | None = None
        self._ended_turn = 0

    async def commit(self, *bodies: AnyBody) -> None:
        assert bodies
        self.check_lease()
        self.step("before a commit")
        self.journal.commits.append(bodies)
        self.step("after a commit")
        for body in bodies:
            self.projection.add(body)
            if isinstance(body, RunFinished) and self._ended_turn:
                self.emit(EventKind.TURN_COMPLETED, self._ended_turn)
            self._hear(KIND_OF_RECORD[KIND_OF[type(body)]])
            if isinstance(body, SteeringApplied):
                self.steering = [each for each in self.steering if each.input_id != body.input_id]
        if self.abort_at_commit is not None and len(self.journal.commits) >= self.abort_at_commit:
            self.cancellation.cancel("aborted")

    async def keep(self, content: bytes, media_type: str) -> BlobRef:
        self.check_lease()
        self.step("before content is kept")
        ref = pack_blob(content, media_type).ref
        self.journal.blobs[ref.digest] = content
        self.step("after content is kept")
        return ref

    def emit(self, kind: EventKind, turn: int, payload: dict[str, Any] | None = None) -> None:
        self.events.append((kind, turn, payload))
        self._hear(kind)

    def say(self, turn: int, delta: str) -> None:
        assert self.projection.open_run is not None
        assert turn == self.projection.open_run.turn + 1
        self.said.append(delta)
        self._hear(EventKind.ASSISTANT_TEXT_DELTA)

    def _hear(self, kind: EventKind) -> None:
        if not (kind.endswith("_delta") and self.trace[-1:] == [kind]):
            self.trace.append(str(kind))

    def check_lease(self) -> None:
        if self.lease_lost:
            raise WriteRefusedError("the lease is lost")

    async def reach_turn_boundary(self) -> None:
        if self.draining:
            raise HandBackSignal

    async def begin(self, task: str = "do it") -> None:
        """Journal the start of the run, or of one more attempt."""
        if self.projection.open_run is not None:
            await self.commit(
                AttemptStarted(
                    run_id=self.run_id,
                    attempt=self.attempt,
                    worker_id="w",
                    cause=AttemptCause.CRASH,
                )
            )
            return
        await self.commit(
            RunStarted(
                run_id=self.run_id,
                attempt=self.attempt,
                agent="agent",
                version="1",
                worker_id="w",
                message=UserMessage(task),
            )
        )

    async def finish(self, ending: Ending) -> None:
        """Journal the end, together with what belongs to it."""
        self.result = ending.result(self.projection)
        self._ended_turn = ending.turn
        end = RunFinished(run_id=self.run_id, branch_id=BRANCH, result=self.result)
        await self.commit(*ending.last, end)

    async def go_on(self, agent: Agent) -> Ending:
        """Go on to the end, without journaling it."""
        return await orchestrate(agent, self)

    async def carry_on(self, agent: Agent) -> Ending:
        """Begin, go on to the end and journal it; the agent is started and stopped around it."""
        await agent.startup()
        try:
            await self.begin()
            ending = await self.go_on(agent)
            await self.finish(ending)
        finally:
            await agent.shutdown()
            self.step("the end of an attempt")
        return ending
