"""Records that the server lost → a branch of their own."""

from collections.abc import Sequence

import msgspec

from runlane.journal.errors import BlobMissingError, BranchExistsError, SessionClosedError
from runlane.journal.partition import Partition
from runlane.journal.transitions.entries import Written, entry_args
from runlane.journal.wire.tree import Jump, LastRun


async def keep_lost(
    partition: Partition,
    session_id: str,
    jump: Jump,
    written: Sequence[Written],
    *,
    request_id: str,
    agent: str,
    revision: int,
    last_run: LastRun | None,
) -> None:
    """Keep lost records as a branch.

    Args:
        partition: Where the session lives.
        session_id: The session; it is made again if the server has lost it as well.
        jump: The branch, and the last record that the server has.
        written: The records on top of that one, `branch_created` first.
        request_id: The same one again for the same branch is recognised.
        agent: The agent of the session.
        revision: What the first lost record had.
        last_run: The run that ended last on the branch.

    Raises:
        BranchExistsError: The session has a branch of this name.
        SessionClosedError: The session was deleted, or is being deleted or imported.
        BlobMissingError: A record names a blob that the session does not have.
        ServerUnavailableError: The server is away.
    """
    code, *rest = await partition.transition(
        "keep_lost",
        request_id,
        session_id,
        jump.branch_id,
        jump.base_id,
        request_id,
        msgspec.msgpack.encode(jump),
        agent,
        revision,
        *(last_run.run_id, last_run.stop_reason) if last_run else ("", ""),
        len(written),
        *entry_args(written),
        barrier=True,
    )
    match code:
        case b"OK" | b"DUP":
            return
        case b"BRANCH_EXISTS":
            raise BranchExistsError(session_id=session_id, branch_id=jump.branch_id)
        case b"DELETED":
            raise SessionClosedError(session_id, "deleted")
        case b"MISSING_BLOB":
            raise BlobMissingError(session_id=session_id, digest=rest[0].decode())
        case _:
            raise SessionClosedError(session_id, rest[0].decode())
