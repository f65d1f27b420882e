"""An archive belongs to one deployment: that of another one is neither read nor written."""

from runlane.journal.archive.archive import Archive
from runlane.journal.errors import ArchiveMismatchError, ArchiveMissingError
from runlane.journal.partition import Partition


async def archive_of(partition: Partition, session_id: str) -> Archive:
    """Return the archive for reading; whose it is is looked up once per process.

    Raises:
        ArchiveMissingError: This process has no archive.
        ArchiveMismatchError: It is not this deployment's.
        ArchiveError: It cannot be reached.
        ServerUnavailableError: The server is away.
    """
    archive = partition.archive
    if archive is None:
        raise ArchiveMissingError(None, session_id=session_id)
    if archive.owner is None:
        owner: bytes | None = await partition.call("HGET", partition.keys.meta(), "deployment")
        found = await archive.deployment()
        if owner is None or found != owner.decode():
            raise ArchiveMismatchError(root=partition.keys.root, owner=found)
        archive.owner = found
    return archive


async def check_archive(partition: Partition) -> None:
    """Check that this process knows the deployment's archive and no other; none is claimed.

    Raises:
        ArchiveMissingError: The deployment has an archive, and this process has none.
        ArchiveMismatchError: It is not this deployment's.
        ArchiveError: It cannot be reached.
        ServerUnavailableError: The server is away.
    """
    archive, meta = partition.archive, partition.keys.meta()
    owner, claimed = await partition.call("HMGET", meta, "deployment", "archive_claimed")
    if archive is None:
        if claimed is not None:
            raise ArchiveMissingError(None)
        return
    found = await archive.deployment()
    is_new = found is None and claimed is None
    if not is_new and (owner is None or found != owner.decode()):
        raise ArchiveMismatchError(root=partition.keys.root, owner=found)


async def own_archive(partition: Partition) -> Archive:
    """Return the archive for writing; whose it is is looked up now, and a new one is claimed.

    A store that says nothing is new only as long as the deployment has not claimed one.

    Raises:
        ArchiveMismatchError: It is not this deployment's.
        ArchiveError: It cannot be reached.
        ServerUnavailableError: The server is away.
    """
    archive, meta = partition.archive, partition.keys.meta()
    assert archive is not None, "only who has an archive asks whose it is"
    stored, claimed = await partition.call("HMGET", meta, "deployment", "archive_claimed")
    owner: str = stored.decode()
    found = await archive.deployment()
    if found is None and claimed is None:
        found = await archive.claim(owner)
    if found != owner:
        raise ArchiveMismatchError(root=partition.keys.root, owner=found)
    if claimed is None:
        await partition.call("HSET", meta, "archive_claimed", 1)
    archive.owner = owner
    return archive
