"""running → running."""

from collections.abc import Sequence

import msgspec

from runlane.journal.errors import SessionConflictError, SessionFencedError, WriteRefusedError
from runlane.journal.ids import new_request_id
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.wire.codec import chain_hash, encode_body
from runlane.journal.wire.events import Event
from runlane.journal.wire.records import AnyBody


async def append(
    partition: Partition,
    lease: Lease,
    entries: Sequence[AnyBody | Event],
    *,
    head: str,
    progress: bool,
    retry_s: float,
) -> tuple[str, str | None]:
    """Append all of `entries` or none; return the new head and why the run is to stop, if it is.

    Args:
        partition: Where the session lives.
        lease: Proof that the caller may write.
        entries: At least one, oldest first; an event among them is heard at its place and not
            kept.
        head: Record id of the record that the caller built on.
        progress: Whether the run got further; the mere start of an attempt is none.
        retry_s: How long to go on while the server is away, in seconds.

    Raises:
        SessionFencedError: The lease was lost; nothing was written.
        SessionConflictError: The branch has another head; nothing was written.
        SessionOutcomeUnknownError: No reply came in that time.
        ServerUnavailableError: The server is away, and nothing was sent.
    """
    request_id = new_request_id()
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
        len(entries),
        *entry_args(lease.branch_id, head, entries),
        retry_s=retry_s,
    )
    if code in (b"OK", b"DUP"):
        return rest[0].decode(), rest[1].decode() or None
    raise write_refused(code, rest[0].decode(), lease, head)


def entry_args(branch_id: str, head: str, entries: Sequence[AnyBody | Event]) -> list[str | bytes]:
    """Return kind, hash and bytes of each record, chained to `head`; events have neither."""
    args: list[str | bytes] = []
    parent_hash = head.rpartition(".")[2]
    for entry in entries:
        if isinstance(entry, Event):
            args += ["", "", msgspec.msgpack.encode(entry)]
            continue
        kind, data = encode_body(entry)
        parent_hash = chain_hash(parent_hash, branch_id, kind, data)
        args += [kind, parent_hash, data]
    return args


def write_refused(code: bytes, found: str, lease: Lease, head: str) -> WriteRefusedError:
    """Return what to raise when a script refuses a write."""
    if code == b"FENCED":
        return SessionFencedError(run_id=lease.run_id, fence=lease.fence, fence_held=found)
    return SessionConflictError(run_id=lease.run_id, head=head, head_found=found)
