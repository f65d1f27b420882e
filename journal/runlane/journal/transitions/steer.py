"""running, or about to → the same, with something more to hear."""

import uuid
from typing import Final

from runlane.journal.partition import Partition
from runlane.journal.wire.control import ControlReceipt, ControlStatus

CAPACITY: Final = 16
"""How many inputs may wait for one run to hear them."""

_KNOWN_MS: Final = 3_600_000
"""How long an accepted input is recognised when it is sent again."""

_ANSWERS: Final = {
    b"ACCEPTED": ControlStatus.ACCEPTED,
    b"AGENT_IDLE": ControlStatus.AGENT_IDLE,
    b"RUN_CLOSING": ControlStatus.RUN_CLOSING,
    b"QUEUE_FULL": ControlStatus.QUEUE_FULL,
}


async def steer(
    partition: Partition, session_id: str, branch_id: str, content: str
) -> ControlReceipt:
    """Say something to the active run of a lane; a reply that was lost is asked for again.

    Args:
        partition: Where the session lives.
        session_id: With `branch_id`, the lane.
        branch_id: The branch.
        content: What is said.

    Raises:
        DurabilityError: It was accepted, and too few replicas confirmed it.
        ServerUnavailableError: The server is away.
    """
    input_id = uuid.uuid4().hex
    code, run_id, queue_size = await partition.transition(
        "steer",
        input_id,
        session_id,
        branch_id,
        input_id,
        content,
        CAPACITY,
        _KNOWN_MS,
        barrier=True,
    )
    return ControlReceipt(
        run_id=run_id.decode(),
        status=_ANSWERS[code],
        input_id=input_id if code == b"ACCEPTED" else None,
        queue_size=queue_size,
    )
