"""That a session was deleted is forgotten."""

from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition


async def forget_deleted(partition: Partition, session_id: str, *, revision: str) -> bool:
    """Forget it; return False if the session was deleted again meanwhile.

    Args:
        partition: Where the session was.
        session_id: The session.
        revision: Its last one, as it is remembered; empty if it is not.

    Raises:
        ServerUnavailableError: The server is away.
    """
    code, *_ = await partition.transition("forget_deleted", new_request_id(), session_id, revision)
    return bool(code == b"OK")
