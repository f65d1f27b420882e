"""What keeps a deployment small: archiving, deletion, and the end of what has had its time."""

from runlane.journal.upkeep.archiver import archive_session
from runlane.journal.upkeep.deletion import delete, resume_deletions
from runlane.journal.upkeep.retention import drop_expired

__all__ = ["archive_session", "delete", "drop_expired", "resume_deletions"]
