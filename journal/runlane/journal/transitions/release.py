"""holding a lane, or waiting for it → nothing."""

from runlane.journal.partition import Partition
from runlane.journal.wire.tree import LastRun


async def release(
    partition: Partition,
    run_id: str,
    *,
    wrote: bool = False,
    last_run: LastRun | None = None,
    retry_s: float,
) -> bool:
    """Give a hold up; return False if it had ended otherwise before.

    Args:
        partition: Where the session lives.
        run_id: Of the hold.
        wrote: Whether the holder appended anything.
        last_run: The run that ended last on the branch after that.
        retry_s: How long to go on while the server is away, in seconds.

    Raises:
        ServerUnavailableError: The server is away: the hold ends with its lease.
    """
    code, *rest = await partition.transition(
        "release",
        run_id,
        run_id,
        int(wrote),
        *(last_run.run_id, last_run.stop_reason) if last_run else ("", ""),
        retry_s=retry_s,
    )
    return bool(code == b"OK" or rest[0] == b"completed")
