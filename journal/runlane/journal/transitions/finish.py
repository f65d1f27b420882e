"""running → completed, failed, cancelled or rejected."""

from collections.abc import Sequence

from msgspec import Struct

from runlane.journal.ids import new_request_id
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition, Patience
from runlane.journal.transitions.append import write_refused
from runlane.journal.transitions.entries import Written, as_stored, chained, entry_args
from runlane.journal.transitions.inputs import decode_inputs, settled_by
from runlane.journal.transitions.settle import DISCARDED, encode_result
from runlane.journal.wire.codec import encode_body
from runlane.journal.wire.control import ControlInput
from runlane.journal.wire.events import Event
from runlane.journal.wire.records import AnyBody, RunFinished
from runlane.journal.wire.results import AgentRunResult
from runlane.journal.wire.tree import Checkpoint


class Finished(Struct, frozen=True):
    """What came of a finish: nothing was written unless the run has ended.

    Attributes:
        head: Record id of the last record of the branch; empty if the run has not ended.
        written: The entries as they were stored, oldest first; none if it has not.
        at_ms: Server time of the records.
        abort_reason: An accepted abort that wins over this end; None if there is none.
        pending: What was said to the run, if it cannot end before its records say what became
            of that.
    """

    head: str
    written: Sequence[Written] = ()
    at_ms: int = 0
    abort_reason: str | None = None
    pending: tuple[ControlInput, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return bool(self.head)


async def finish(
    partition: Partition,
    lease: Lease,
    result: AgentRunResult,
    *,
    entries: Sequence[AnyBody | Event | Written],
    head: str,
    retry_s: Patience,
    checkpoint: Checkpoint | None = None,
) -> Finished:
    """End a run: its last records and `run_finished` in one step, and the lane goes on.

    Args:
        partition: Where the session lives.
        lease: Proof that the caller may write.
        result: How the run ended.
        entries: Records and events that come before the end, oldest first; see `append`.
        head: Record id of the record that the caller built on.
        retry_s: How long to go on while the server is away, in seconds.
        checkpoint: What stands for the branch after the end; None leaves it out.

    Raises:
        SessionFencedError: The lease was lost; nothing was written.
        SessionConflictError: The branch has another head; nothing was written.
        DurabilityError: The run ended, and too few replicas confirmed it in that time.
        SessionOutcomeUnknownError: No reply came in that time.
        ServerUnavailableError: The server is away, and nothing was sent.
    """
    request_id = new_request_id()
    end = RunFinished(run_id=lease.run_id, branch_id=lease.branch_id, result=result)
    last = [*entries, as_stored(end, entries), *([checkpoint] if checkpoint else [])]
    written = chained(lease.branch_id, head, last)
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
        encode_body(end)[1],
        encode_result(DISCARDED),
        partition.keep_runs_ms,
        partition.cold_ms,
        settled_by(written),
        len(written),
        *entry_args(written),
        retry_s=retry_s,
        barrier=True,
    )
    if code in (b"OK", b"DUP"):
        return Finished(head=rest[0].decode(), written=written, at_ms=rest[1])
    if code == b"ABORTED":
        return Finished(head="", abort_reason=rest[0].decode())
    if code == b"PENDING":
        return Finished(head="", pending=decode_inputs(rest[0]))
    raise write_refused(code, rest[0].decode(), lease, head)
