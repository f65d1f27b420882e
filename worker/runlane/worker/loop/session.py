"""What the loop needs of the outside: one run, as it is journaled and heard."""

from collections.abc import Sequence
from typing import Any, Protocol

from runlane.journal.projection import Projection
from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.control import ControlInput
from runlane.journal.wire.events import EventKind
from runlane.journal.wire.records import AnyBody
from runlane.worker.control import CancellationToken


class HandBackSignal(Exception):  # noqa: N818 (a signal to the caller, not a fault)
    """The worker stops: the run is at a turn boundary and may go on elsewhere."""


class RunSession(Protocol):
    """One attempt of one run.

    Attributes:
        run_id: The run.
        session_id: The session.
        agent_name: The agent.
        attempt: 1 for the first try.
        projection: The branch, with everything committed so far; `open_run` is this run.
        cancellation: Set when the run is to stop.
        server_changed: The server restarted or failed over since the run's last response, so that
            an intent for one of its calls may be lost.
        blob_bytes_max: The largest content that `keep` takes.
    """

    run_id: str
    session_id: str
    agent_name: str
    attempt: int
    projection: Projection
    cancellation: CancellationToken
    server_changed: bool
    blob_bytes_max: int

    @property
    def steering(self) -> Sequence[ControlInput]:
        """What was said to the run and is not journaled yet, oldest first.

        A commit of `SteeringApplied` takes its input out.
        """
        ...

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began, by the server's clock, over all attempts."""
        ...

    async def commit(self, *bodies: AnyBody) -> None:
        """Journal records and fold them into `projection`; all or none.

        Raises:
            WriteRefusedError: The lease was lost; nothing was written, and nothing may be.
        """
        ...

    async def keep(self, content: bytes, media_type: str) -> BlobRef:
        """Keep content that is too large for a record; the next commit is to name it.

        Raises:
            WriteRefusedError: The lease was lost; nothing was kept, and nothing may be written.
        """
        ...

    def emit(self, kind: EventKind, turn: int, payload: dict[str, Any] | None = None) -> None:
        """Let subscribers hear a provisional event, at its place among records."""
        ...

    def say(self, turn: int, delta: str) -> None:
        """Let subscribers hear more of the model's text, coalesced."""
        ...

    def check_lease(self) -> None:
        """Raise if the lease has ended by this worker's own clock.

        Raises:
            WriteRefusedError: It has: a side effect must not begin.
        """
        ...

    async def reach_turn_boundary(self) -> None:
        """Between two turns: keep the journal short, and raise if the worker stops.

        Raises:
            HandBackSignal: It does.
            WriteRefusedError: The lease was lost.
        """
        ...
