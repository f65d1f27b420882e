"""leased → running."""

from typing import Any

from msgspec import Struct

from runlane.journal.errors import SessionFencedError
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.transitions.inputs import decode_inputs
from runlane.journal.wire.control import ControlInput


class Checkout(Struct, frozen=True):
    """What the holder of a lease begins with.

    Attributes:
        head: Record id of the branch's last record; empty for a new branch.
        abort_reason: Why the run is to stop; None if nobody asked.
        inc: Of the server now; records that it wrote before its last restart or promotion have
            another one in their ids.
        entries: Stream entries from the head back to the last checkpoint, newest first; further
            ones may have to be read.
        elapsed_s: Seconds since the first attempt began.
        inputs: What was said to the run and waits to be heard, oldest first.
    """

    head: str
    abort_reason: str | None
    inc: str
    entries: list[Any]
    elapsed_s: float
    inputs: tuple[ControlInput, ...]


async def checkout(partition: Partition, lease: Lease, *, page: int) -> Checkout:
    """Begin an attempt.

    Raises:
        SessionFencedError: The lease was lost.
        ServerUnavailableError: The server is away.
    """
    code, *rest = await partition.transition(
        "checkout",
        lease.fence,
        lease.run_id,
        lease.session_id,
        lease.branch_id,
        lease.fence,
        page,
    )
    if code == b"FENCED":
        raise SessionFencedError(
            run_id=lease.run_id, fence=lease.fence, fence_held=rest[0].decode()
        )
    head, reason, inc, entries, elapsed_ms, inputs = rest
    return Checkout(
        head=head.decode(),
        abort_reason=reason.decode() or None,
        inc=inc.decode(),
        entries=entries,
        elapsed_s=elapsed_ms / 1000,
        inputs=decode_inputs(inputs),
    )
