"""running → completed, failed, cancelled or rejected."""

from collections.abc import Sequence

from msgspec import Struct

from runlane.journal.ids import new_request_id
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.transitions.append import entry_args, write_refused
from runlane.journal.transitions.settle import DISCARDED, encode_result
from runlane.journal.wire.events import Event
from runlane.journal.wire.records import AnyBody, RunFinished
from runlane.journal.wire.results import AgentRunResult


class Finished(Struct, frozen=True):
    """What came of a finish.

    Attributes:
        head: Record id of `run_finished`; empty if the run has not ended.
        abort_reason: An accepted abort that wins over this end; None if the run ended.
    """

    head: str
    abort_reason: str | None = None


async def finish(
    partition: Partition,
    lease: Lease,
    result: AgentRunResult,
    *,
    entries: Sequence[AnyBody | Event],
    head: str,
    retry_s: float,
) -> Finished:
    """End a run: its last records and `run_finished` in one step, and the lane goes on.

    Args:
        partition: Where the session lives.
        lease: Proof that the caller may write.
        result: How the run ended.
        entries: Records that come before the end, oldest first; an event among them is heard at
            its place and not kept.
        head: Record id of the record that the caller built on.
        retry_s: How long to go on while the server is away, in seconds.

    Raises:
        SessionFencedError: The lease was lost; nothing was written.
        SessionConflictError: The branch has another head; nothing was written.
        SessionOutcomeUnknownError: No reply came in that time.
        ServerUnavailableError: The server is away, and nothing was sent.
    """
    request_id = new_request_id()
    end = RunFinished(run_id=lease.run_id, branch_id=lease.branch_id, result=result)
    code, *rest = await partition.transition(
        "finish",
        request_id,
        lease.run_id,
        lease.session_id,
        lease.branch_id,
        lease.fence,
        request_id,
        head,
        result.status,
        result.stop_reason,
        encode_result(result),
        encode_result(DISCARDED),
        len(entries) + 1,
        *entry_args(lease.branch_id, head, [*entries, end]),
        retry_s=retry_s,
    )
    if code in (b"OK", b"DUP"):
        return Finished(head=rest[0].decode())
    if code == b"ABORTED":
        return Finished(head="", abort_reason=rest[0].decode())
    raise write_refused(code, rest[0].decode(), lease, head)
