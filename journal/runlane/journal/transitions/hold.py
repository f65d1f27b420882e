"""nothing → waiting in a lane → holding it."""

from msgspec import Struct

from runlane.journal.errors import (
    SessionClosedError,
    SessionFencedError,
    UnknownBranchError,
    UnknownSessionError,
)
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition

QUEUE = "@hold"
"""Where holds lie; no agent has such a name."""


class Place(Struct, frozen=True, kw_only=True):
    """One wish to hold a lane.

    Attributes:
        run_id: Of the hold: a UUIDv7 that the holder chose.
        session_id: With `branch_id`, the lane.
        branch_id: The branch.
        holder: Who asks, for people to read.
        nonce: Random part of the fence.
        lease_ms: How long the holder may be silent, in milliseconds.
    """

    run_id: str
    session_id: str
    branch_id: str
    holder: str
    nonce: str
    lease_ms: int


class Held(Struct, frozen=True):
    """The lane is held.

    Attributes:
        lease: The right to write to it.
        head: Record id of the branch's last record; empty if it has none.
    """

    lease: Lease
    head: str


class Ahead(Struct, frozen=True):
    """The lane belongs to somebody else.

    Attributes:
        run_id: The run, or hold, that is active in it.
        worker: Who holds that one; empty if nobody does.
        held: Whether it is a hold.
    """

    run_id: str
    worker: str
    held: bool = False


async def hold(
    partition: Partition, place: Place, *, fence: str = "", retry_s: float | None = None
) -> Held | Ahead:
    """Enter a lane, take it once it is our turn, and keep it for another lease.

    Args:
        partition: Where the session lives.
        place: The wish.
        fence: What is held already; empty while the lane is waited for.
        retry_s: How long to go on while the server is away; None for the setting.

    Raises:
        SessionFencedError: Somebody took the lane away, or it went on after a long silence.
        UnknownSessionError: There is no such session.
        UnknownBranchError: It has no such branch.
        SessionClosedError: It is being deleted or imported.
        ServerUnavailableError: The server is away.
    """
    code, *rest = await partition.transition(
        "hold",
        place.run_id,
        place.run_id,
        place.session_id,
        place.branch_id,
        place.holder,
        place.nonce,
        place.lease_ms,
        fence,
        retry_s=retry_s,
    )
    match code:
        case b"OK":
            lease = Lease(
                run_id=place.run_id,
                session_id=place.session_id,
                branch_id=place.branch_id,
                queue=QUEUE,
                fence=rest[0].decode(),
                attempt=0,
            )
            return Held(lease, rest[1].decode())
        case b"WAITING":
            run_id, worker, intent = (word.decode() for word in rest)
            return Ahead(run_id, worker, held=intent == "hold")
        case b"FENCED":
            raise SessionFencedError(run_id=place.run_id, fence=fence, fence_held=rest[0].decode())
        case b"UNKNOWN_SESSION":
            raise UnknownSessionError(place.session_id)
        case b"UNKNOWN_BRANCH":
            known = tuple(name.decode() for name in rest)
            raise UnknownBranchError(place.session_id, place.branch_id, known=known)
        case _:
            raise SessionClosedError(place.session_id, rest[0].decode())
