"""A session takes no new work, and its runs end."""

import os
from typing import Final

from msgspec import Struct

from runlane.journal.errors import UnknownSessionError
from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition
from runlane.journal.transitions.settle import encode_result
from runlane.journal.wire.results import AgentRunResult, RunStatus, StopReason

DELETED: Final = AgentRunResult(
    status=RunStatus.CANCELLED,
    stop_reason=StopReason.EXTERNAL_ABORT,
    error="the session was deleted",
)
"""The end of a run whose session is deleted."""

RESUME_MS: Final = 60_000
"""How long a caller may be silent before somebody else goes on with its deletion."""

_RUNS_AT_ONCE: Final = 100


class Deletion(Struct, frozen=True):
    """A deletion that has begun.

    Attributes:
        session_id: The session.
        name: What tells it from an earlier or later one of a session of this name.
        runs_left: Whether there may be runs that have not ended.
    """

    session_id: str
    name: str
    runs_left: bool


async def delete_session(
    partition: Partition,
    session_id: str,
    *,
    begun: str | None = None,
    unused_ms: int = 0,
    resume_ms: int = RESUME_MS,
    runs: int = _RUNS_AT_ONCE,
) -> Deletion | None:
    """Begin to delete a session, or go on with it: end some of its runs.

    Args:
        partition: Where the session lives.
        session_id: The session.
        begun: Name of the deletion to go on with; None to begin one, or join the one that is
            under way.
        unused_ms: Only if it has no run, and for this long nobody has asked for one and none has
            ended; 0 for whatever goes on in it.
        resume_ms: When somebody else may go on with it, if this caller does not.
        runs: How many to end at most.

    Returns:
        None if it was used, or if the deletion to go on with is done.

    Raises:
        UnknownSessionError: There is no such session.
        ServerUnavailableError: The server is away.
    """
    code, *rest = await partition.transition(
        "delete_session",
        new_request_id(),
        session_id,
        begun or os.urandom(8).hex(),
        DELETED.error or "",
        encode_result(DELETED),
        partition.keep_runs_ms,
        resume_ms,
        runs,
        unused_ms,
        int(begun is not None),
        barrier=True,
    )
    if code == b"UNKNOWN_SESSION":
        raise UnknownSessionError(session_id)
    if code in (b"IN_USE", b"GONE"):
        return None
    return Deletion(session_id, rest[0].decode(), bool(rest[1]))
