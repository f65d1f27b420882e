"""What everything that one client makes shares."""

from msgspec import Struct

from runlane.journal.partition import Partition
from runlane.journal.settings import Settings
from runlane.producer.hub import Hub


class Deployment(Struct, frozen=True):
    """A deployment, as one process sees it.

    Attributes:
        partition: Calls to the server.
        hub: What the server publishes.
        settings: Limits and deadlines.
    """

    partition: Partition
    hub: Hub
    settings: Settings

    async def close(self) -> None:
        """Close both connections."""
        await self.hub.close()
        await self.partition.close()
