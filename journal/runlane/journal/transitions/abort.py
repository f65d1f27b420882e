"""any → told to stop; queued → cancelled."""

from runlane.journal.errors import UnknownRunError
from runlane.journal.partition import Partition
from runlane.journal.transitions.settle import DISCARDED, encode_result
from runlane.journal.wire.codec import encode_body
from runlane.journal.wire.control import ControlReceipt, ControlStatus
from runlane.journal.wire.records import AbortRequested
from runlane.journal.wire.results import AgentRunResult, RunStatus, StopReason


async def abort(
    partition: Partition, run_id: str, *, branch_id: str, reason: str
) -> ControlReceipt:
    """Ask a run to stop; asking again is accepted too, and the first reason stays.

    Raises:
        UnknownRunError: No such run.
        DurabilityError: It was told so, and too few replicas confirmed it.
        ServerUnavailableError: The server is away.
    """
    request = AbortRequested(run_id=run_id, branch_id=branch_id, reason=reason)
    result = AgentRunResult(
        status=RunStatus.CANCELLED, stop_reason=StopReason.EXTERNAL_ABORT, error=reason
    )
    code, *rest = await partition.transition(
        "abort",
        run_id,
        run_id,
        reason,
        encode_body(request)[1],
        encode_result(result),
        encode_result(DISCARDED),
        partition.keep_runs_ms,
        barrier=True,
    )
    if code == b"UNKNOWN_RUN":
        raise UnknownRunError(run_id)
    ended_otherwise = code == b"ENDED" and rest[1].decode() != StopReason.EXTERNAL_ABORT
    return ControlReceipt(
        run_id=run_id,
        status=ControlStatus.RUN_FINISHED if ended_otherwise else ControlStatus.ACCEPTED,
    )
