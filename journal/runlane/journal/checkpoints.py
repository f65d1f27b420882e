"""When a branch gets a checkpoint. Pure."""

from dataclasses import dataclass
from typing import Final

CHECKPOINT_RECORDS: Final = 200
CHECKPOINT_BYTES: Final = 512 * 1024


@dataclass(slots=True)
class Growth:
    """How far a branch has grown since its last checkpoint.

    Attributes:
        distance: Records of the session, of whatever branch: a checkout may have to pass them.
        size: Bytes of the branch's own records, as they are stored.
        checkpoint_size: Bytes of the checkpoint; 0 if there is none.
    """

    distance: int = 0
    size: int = 0
    checkpoint_size: int = 0

    def add(self, *, distance: int, size: int) -> None:
        """Count further records."""
        self.distance += distance
        self.size += size

    @property
    def due(self) -> bool:
        """Whether there is enough to stand in for.

        A checkpoint repeats the whole transcript. One that is larger than usual is not written
        again before as much has come after it: all of those together stay below twice what the
        journal holds besides, and a long conversation is not copied again and again.
        """
        enough = self.distance >= CHECKPOINT_RECORDS or self.size >= CHECKPOINT_BYTES
        return enough and (
            self.checkpoint_size <= CHECKPOINT_BYTES or self.size >= self.checkpoint_size
        )

    def restart(self, checkpoint_size: int) -> None:
        """Begin to count at a new checkpoint."""
        self.distance, self.size, self.checkpoint_size = 0, 0, checkpoint_size
