"""running → running."""

from collections.abc import Sequence

from msgspec import Struct

from runlane.journal.errors import (
    BlobMissingError,
    SessionConflictError,
    SessionFencedError,
    WriteRefusedError,
)
from runlane.journal.ids import new_request_id
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition, Patience
from runlane.journal.transitions.barriers import needs_barrier
from runlane.journal.transitions.entries import Written, chained, entry_args
from runlane.journal.transitions.inputs import decode_inputs, settled_by
from runlane.journal.wire.control import ControlInput
from runlane.journal.wire.events import Event
from runlane.journal.wire.records import AnyBody


class Appended(Struct, frozen=True):
    """What came of an append.

    Attributes:
        head: Record id of the new head.
        abort_reason: Why the run is to stop; None if nobody asked.
        written: The entries as they were stored, oldest first.
        at_ms: Server time of the records.
        inputs: What was said to the run and waits to be heard, oldest first.
    """

    head: str
    abort_reason: str | None
    written: list[Written]
    at_ms: int
    inputs: tuple[ControlInput, ...] = ()


async def append(
    partition: Partition,
    lease: Lease,
    entries: Sequence[AnyBody | Event | Written],
    *,
    head: str,
    progress: bool,
    retry_s: Patience | None,
    request_id: str | None = None,
) -> Appended:
    """Append all of `entries` or none.

    Args:
        partition: Where the session lives.
        lease: Proof that the caller may write.
        entries: At least one, oldest first; an event among them is heard at its place and not
            kept, a record that was stored before is stored as it was.
        head: Record id of the record that the caller built on.
        progress: Whether the run got further; the mere start of an attempt is none.
        retry_s: How long to go on while the server is away, in seconds; None for the setting.
        request_id: Of an earlier call of which nothing is known; None for a new one.

    Raises:
        SessionFencedError: The lease was lost; nothing was written.
        SessionConflictError: The branch has another head; nothing was written.
        BlobMissingError: A record names a blob that the session does not have.
        DurabilityError: They were written, and too few replicas confirmed it in that time.
        SessionOutcomeUnknownError: No reply came in that time.
        ServerUnavailableError: The server is away, and nothing was sent.
    """
    request_id = request_id or new_request_id()
    written = chained(lease.branch_id, head, entries)
    code, *rest = await partition.transition(
        "append",
        request_id,
        lease.run_id,
        lease.session_id,
        lease.branch_id,
        lease.fence,
        request_id,
        head,
        int(progress),
        settled_by(written),
        len(written),
        *entry_args(written),
        retry_s=retry_s,
        barrier=needs_barrier(entries),
    )
    if code in (b"OK", b"DUP"):
        new_head, reason, at_ms, *inputs = rest
        waiting = decode_inputs(inputs[0]) if inputs else ()
        return Appended(new_head.decode(), reason.decode() or None, written, at_ms, waiting)
    raise write_refused(code, rest[0].decode(), lease, head)


def write_refused(code: bytes, found: str, lease: Lease, head: str) -> WriteRefusedError:
    """Return what to raise when a script refuses a write."""
    if code == b"MISSING_BLOB":
        return BlobMissingError(session_id=lease.session_id, digest=found)
    if code == b"FENCED":
        return SessionFencedError(run_id=lease.run_id, fence=lease.fence, fence_held=found)
    return SessionConflictError(
        session_id=lease.session_id, branch_id=lease.branch_id, head=head, head_found=found
    )
