"""Blobs that no record names go."""

from typing import Final

from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition

ORPHAN_AGE_S: Final = 3600
"""A writer that still lives has named its blob long before: its lease ends within ten minutes."""


async def drop_orphans(
    partition: Partition, *, age_s: float = ORPHAN_AGE_S, count: int = 100
) -> int:
    """Drop blobs that no record has named for a while; return how many.

    Args:
        partition: Where the sessions live.
        age_s: How long none has, in seconds.
        count: At most this many; as many dropped means that there may be more.

    Raises:
        ServerUnavailableError: The server is away.
    """
    (dropped,) = await partition.transition(
        "drop_orphans", new_request_id(), int(1000 * age_s), count
    )
    return int(dropped)
