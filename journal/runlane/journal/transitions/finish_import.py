"""importing → a session."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from runlane.journal.errors import ImportLostError
from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition
from runlane.journal.wire.tree import Jump, LastRun


class ImportedBranch(Struct, frozen=True, kw_only=True):
    """A branch of an imported session.

    Attributes:
        branch_id: Its name.
        head: Record id of its last record.
        last_run: The run that ended last on the way to the head.
        checkpoint_id: Record id of the checkpoint at which a checkout of the head may begin.
        created_id: Record id of its `branch_created`; None for `main`.
        jump: Where it goes on from; None for `main`.
    """

    branch_id: str
    head: str
    last_run: LastRun | None = None
    checkpoint_id: str | None = None
    created_id: str | None = None
    jump: Jump | None = None


async def finish_import(
    partition: Partition,
    session_id: str,
    token: str,
    branches: Sequence[ImportedBranch],
    *,
    head: str,
    agent: str | None,
) -> int:
    """Let everybody see an imported session, all of it at once; return its last revision.

    Args:
        partition: Where the session lives.
        session_id: The session.
        token: Names the import.
        branches: All branches of it.
        head: Record id of the last record that was put aside.
        agent: The agent that it is bound to; None to let its first run bind it.

    Raises:
        ImportLostError: What was sent before is gone.
        DurabilityError: It was done, and too few replicas confirmed it.
        ServerUnavailableError: The server is away.
    """
    request_id = new_request_id()
    code, *rest = await partition.transition(
        "finish_import",
        request_id,
        session_id,
        token,
        request_id,
        head,
        agent or "",
        *(word for branch in branches for word in _words(branch)),
        barrier=True,
    )
    if code in (b"OK", b"DUP"):
        return int(rest[0])
    raise ImportLostError(session_id)


def _words(branch: ImportedBranch) -> tuple[str | bytes, ...]:
    last = branch.last_run
    return (
        branch.branch_id,
        branch.head,
        *((last.run_id, last.stop_reason) if last else ("", "")),
        (branch.checkpoint_id or "").partition("-")[0],
        branch.created_id or "",
        msgspec.msgpack.encode(branch.jump) if branch.jump else b"",
    )
