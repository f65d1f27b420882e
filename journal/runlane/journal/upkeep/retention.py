"""What has had its time goes: sessions that nobody uses, dead letters, blobs that nothing names."""

from runlane.journal.errors import UnknownSessionError
from runlane.journal.partition import Partition
from runlane.journal.transitions import drop_dead, drop_orphans
from runlane.journal.upkeep.deletion import delete, server_ms

_PAGE = 100


async def drop_expired(partition: Partition, *, keep_sessions_s: int, keep_dead_s: int) -> int:
    """Drop all that is older than it is to be; return how many sessions were deleted.

    Args:
        partition: The deployment.
        keep_sessions_s: Sessions that had no run for this long are deleted, in seconds; 0 keeps
            all of them.
        keep_dead_s: How long a dead letter is kept, and a deleted session remembered, in seconds.

    Raises:
        ArchiveError: The archive cannot be used.
        ServerUnavailableError: The server is away.
    """
    while await drop_dead(partition, age_s=keep_dead_s, count=_PAGE) == _PAGE:
        pass
    while await drop_orphans(partition, count=_PAGE) == _PAGE:
        pass
    if not keep_sessions_s:
        return 0
    latest = await server_ms(partition) - 1000 * keep_sessions_s
    deleted = kept = 0
    while page := await _asked_before(partition, latest, kept):
        for session_id in page:
            if await _delete(partition, session_id, keep_sessions_s, keep_dead_s):
                deleted += 1
            else:
                kept += 1
    return deleted


async def _asked_before(partition: Partition, latest: int, offset: int) -> list[str]:
    """Return sessions that nobody has asked for anything since, those asked longest ago first."""
    members: list[bytes] = await partition.call(
        *("ZRANGE", partition.keys.sessions(), "-inf", latest, "BYSCORE", "LIMIT", offset, _PAGE)
    )
    return [member.decode() for member in members]


async def _delete(partition: Partition, session_id: str, unused_s: int, keep_s: int) -> bool:
    try:
        return await delete(partition, session_id, unused_s=unused_s, keep_s=keep_s)
    except UnknownSessionError:
        return False
