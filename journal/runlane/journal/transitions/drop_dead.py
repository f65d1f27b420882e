"""Dead letters have had their time."""

from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition


async def drop_dead(partition: Partition, *, age_s: float, count: int = 100) -> int:
    """Drop dead letters that are older; return how many.

    Args:
        partition: Where they lie.
        age_s: How long they are kept, in seconds.
        count: At most this many; as many dropped means that there may be more.

    Raises:
        ServerUnavailableError: The server is away.
    """
    (dropped,) = await partition.transition("drop_dead", new_request_id(), int(1000 * age_s), count)
    return int(dropped)
