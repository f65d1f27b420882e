"""A session may be deleted while it is read: then what is missing is no damage."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from runlane.journal.errors import (
    ArchiveMissingError,
    RecordMissingError,
    SessionClosedError,
    UnknownRecordError,
    UnknownSessionError,
)
from runlane.journal.partition import Partition


@asynccontextmanager
async def unless_gone(partition: Partition, session_id: str) -> AsyncGenerator[None]:
    """Read a session within the block; whatever is missing, say so if the session is gone.

    Raises:
        UnknownSessionError: It was deleted meanwhile.
        SessionClosedError: It is being deleted.
        ServerUnavailableError: The server is away.
    """
    try:
        yield
    except (RecordMissingError, UnknownRecordError, ArchiveMissingError) as error:
        key = partition.keys.session(session_id)
        rev, state = await partition.call("HMGET", key, "rev", "state")
        if rev is None:
            raise UnknownSessionError(session_id) from error
        if state:
            raise SessionClosedError(session_id, state.decode()) from error
        raise
