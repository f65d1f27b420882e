"""importing → nothing."""

from runlane.journal.partition import Partition


async def drop_import(
    partition: Partition, session_id: str, token: str, *, retry_s: float | None = None
) -> None:
    """Give an import up; nothing happens if it has come to its end, or is gone.

    Args:
        partition: Where the session was to live.
        session_id: The session.
        token: Names the import.
        retry_s: How long to go on while the server is away; None for the setting.

    Raises:
        ServerUnavailableError: The server is away.
    """
    await partition.transition("drop_import", token, session_id, token, retry_s=retry_s)
