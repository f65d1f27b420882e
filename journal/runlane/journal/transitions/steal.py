"""leased, running → queued, whatever its worker does."""

from typing import Final

from runlane.journal.errors import UnknownRunError
from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition
from runlane.journal.wire.codec import encode_body
from runlane.journal.wire.control import ControlReceipt, ControlStatus
from runlane.journal.wire.records import LeaseStolen

_ANSWERS: Final = {
    b"ACCEPTED": ControlStatus.ACCEPTED,
    b"NOT_HELD": ControlStatus.AGENT_IDLE,
    b"ENDED": ControlStatus.RUN_FINISHED,
}


async def steal(
    partition: Partition, run_id: str, *, branch_id: str, reason: str
) -> ControlReceipt:
    """Take a run away from its worker, so that another one carries it on; a hold ends.

    Args:
        partition: Where the session lives.
        run_id: The run, or hold.
        branch_id: Its branch.
        reason: Why; the worker is told.

    Raises:
        UnknownRunError: No such run.
        DurabilityError: It was taken away, and too few replicas confirmed it.
        ServerUnavailableError: The server is away.
    """
    request_id = new_request_id()
    stolen = LeaseStolen(run_id=run_id, branch_id=branch_id, reason=reason)
    code, *_ = await partition.transition(
        "steal", request_id, run_id, request_id, reason, encode_body(stolen)[1], barrier=True
    )
    if code == b"UNKNOWN_RUN":
        raise UnknownRunError(run_id)
    return ControlReceipt(run_id=run_id, status=_ANSWERS[code])
