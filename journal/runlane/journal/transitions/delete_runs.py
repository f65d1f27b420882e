"""Runs of a session that is being deleted are forgotten."""

from collections.abc import Sequence

from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition
from runlane.journal.transitions.delete_session import Deletion


async def delete_runs(partition: Partition, deletion: Deletion, run_ids: Sequence[str]) -> bool:
    """Forget runs, unless they are another session's; return False if the session is gone.

    Raises:
        ServerUnavailableError: The server is away.
    """
    code, *_ = await partition.transition(
        "delete_runs", new_request_id(), deletion.session_id, deletion.name, *run_ids
    )
    return bool(code == b"OK")
