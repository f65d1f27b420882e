"""A session is gone."""

from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition
from runlane.journal.transitions.delete_session import Deletion


async def delete_rest(partition: Partition, deletion: Deletion, *, keep_ms: int) -> bool:
    """Remove what is left of a session whose runs and archive are gone.

    Args:
        partition: Where the session lives.
        deletion: Its deletion.
        keep_ms: How long to remember its last revision.

    Returns:
        False if it was gone before.

    Raises:
        ServerUnavailableError: The server is away.
    """
    code, *_ = await partition.transition(
        "delete_rest", new_request_id(), deletion.session_id, deletion.name, keep_ms, barrier=True
    )
    return bool(code == b"OK")
