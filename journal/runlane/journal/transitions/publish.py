"""running → running: subscribers hear what is not journaled."""

from collections.abc import Sequence
from typing import Final

import msgspec

from runlane.journal.errors import SessionFencedError
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.wire.events import Event

PARTIAL_TEXT_MS: Final = 60_000


async def publish(
    partition: Partition, lease: Lease, events: Sequence[Event], *, text: str, turn: int
) -> None:
    """Publish provisional events once; they are lost if the server is away.

    Args:
        partition: Where the session lives.
        lease: Proof that the caller may speak for the run.
        events: At least one, oldest first.
        text: What they add to the text of the turn, kept for late subscribers.
        turn: The model response that the text belongs to.

    Raises:
        SessionFencedError: The lease was lost; nobody heard anything.
        ServerUnavailableError: The server is away.
    """
    code, *rest = await partition.transition(
        "publish",
        lease.fence,
        lease.run_id,
        lease.session_id,
        lease.branch_id,
        lease.fence,
        text,
        f"{lease.attempt}:{turn}",
        PARTIAL_TEXT_MS,
        *(msgspec.msgpack.encode(event) for event in events),
        retry_s=0,
    )
    if code == b"FENCED":
        raise SessionFencedError(
            run_id=lease.run_id, fence=lease.fence, fence_held=rest[0].decode()
        )
