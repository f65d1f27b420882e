"""The archive."""

from runlane.journal.errors.base import RunlaneError
from runlane.journal.errors.values import UndecodableError


class ArchiveError(RunlaneError):
    """The archive of journals cannot be used; what was asked may have been done all the same."""


class ArchiveMissingError(ArchiveError):
    """What is needed lies in the archive, and this process does not find it there.

    Attributes:
        path: The object; None if this process has no archive.
    """

    def __init__(self, path: str | None, *, session_id: str = "") -> None:
        self.path = path
        super().__init__(
            f"the archive has no object {path}; check that RUNLANE_ARCHIVE names the same store "
            "in every process"
            if path
            else f"older records{session_id and f' of session {session_id!r}'} lie in an archive "
            "that this process does not know; set RUNLANE_ARCHIVE to the one that the workers use"
        )


class ArchiveMismatchError(ArchiveError):
    """The archive is not this deployment's; nothing was read or written there.

    Attributes:
        root: First part of every key of this deployment.
        owner: What the store says whose it is; None if it says nothing.
    """

    def __init__(self, *, root: str, owner: str | None) -> None:
        self.root = root
        self.owner = owner
        found = f"belongs to deployment {owner}" if owner else "is empty, or was emptied"
        super().__init__(
            f"the archive that RUNLANE_ARCHIVE names {found}: it is not the one in which {root} "
            "has its records. Let RUNLANE_ARCHIVE name the same store in every process and on "
            "every host; a folder of one host is none for another one"
        )


class ArchiveDamagedError(ArchiveError, UndecodableError):
    """An archived object is not what was written, or is of a newer version.

    Attributes:
        path: The object.
        line: The first line that is wrong, from 1; None for an object without lines.
    """

    def __init__(
        self,
        *,
        path: str,
        line: int | None,
        reason: str,
        advice: str = "restore it from a backup of the archive",
    ) -> None:
        self.path = path
        self.line = line
        place = path if line is None else f"{path}, line {line}"
        super().__init__(f"archived object {place}: {reason}; {advice}")
