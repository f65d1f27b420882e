"""nothing → importing → more of it."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from runlane.journal.errors import ImportLostError, SessionExistsError
from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition

KEEP_IMPORT_MS: Final = 60_000
"""How long an import may be silent: longer than a client goes on trying to reach the server."""


class StagedRecord(Struct, frozen=True):
    """A record of an import, as it is stored.

    Attributes:
        branch_id: Its branch.
        parent: The record that it goes on from: a record id, or the place of an earlier record of
            the same call, from 0; None for the first of a path.
        kind: What it says.
        digest: Its chain hash.
        data: Its content, encoded.
    """

    branch_id: str
    parent: str | int | None
    kind: str
    digest: str
    data: bytes


async def import_records(
    partition: Partition,
    session_id: str,
    token: str,
    records: Sequence[StagedRecord],
    *,
    head: str,
    keep_ms: int = KEEP_IMPORT_MS,
) -> list[str]:
    """Put records of a session aside that nobody sees before `finish_import`.

    Args:
        partition: Where the session is to live.
        session_id: The session: a new one.
        token: Names the import.
        records: At least one, parents first.
        head: Record id of the last record of the call before; empty for the first call.
        keep_ms: How long the server waits for the next call.

    Returns:
        The record ids.

    Raises:
        SessionExistsError: There is such a session, or somebody imports one.
        ImportLostError: What was sent before is gone.
        ServerUnavailableError: The server is away.
    """
    request_id = new_request_id()
    code, *rest = await partition.transition(
        "import_records",
        request_id,
        session_id,
        token,
        request_id,
        head,
        keep_ms,
        *(word for record in records for word in _words(record)),
    )
    if code in (b"OK", b"DUP"):
        first, inc = rest[0], rest[1].decode()
        return [f"{first + place}-{inc}.{each.digest}" for place, each in enumerate(records)]
    if code == b"SESSION_EXISTS":
        raise SessionExistsError(session_id, rest[0].decode())
    raise ImportLostError(session_id)


def _words(record: StagedRecord) -> tuple[str | bytes, ...]:
    parent = record.parent
    place = f"@{parent + 1}" if isinstance(parent, int) else parent or ""
    return record.branch_id, place, record.kind, record.digest, record.data
