"""`main` → goes on from another branch."""

from runlane.journal.errors import LaneBusyError, SessionConflictError
from runlane.journal.ids import MAIN_BRANCH, new_request_id
from runlane.journal.partition import Partition
from runlane.journal.transitions.create_branch import branch_refusal, jump_args
from runlane.journal.wire.tree import BranchPromoted, Jump, LastRun


async def promote(
    partition: Partition, session_id: str, jump: Jump, *, head: str, last_run: LastRun | None
) -> str:
    """Let `main` go on from the base; return the record id of its new head.

    Args:
        partition: Where the session lives.
        session_id: The session.
        jump: Of `main`.
        head: Record id of the head that `main` has now; empty if it has none.
        last_run: The run that ended last at the base.

    Raises:
        SessionConflictError: `main` has another head.
        LaneBusyError: A run is active in `main`, or it is held.
        UnknownSessionError: There is no such session.
        SessionClosedError: It is being deleted or imported.
        ServerUnavailableError: The server is away.
    """
    body = BranchPromoted(source_branch_id=jump.source_branch_id, previous_head_id=head)
    request_id = new_request_id()
    code, *rest = await partition.transition(
        "promote",
        request_id,
        session_id,
        head,
        *jump_args(jump, body, last_run, request_id),
    )
    if code in (b"OK", b"DUP"):
        return str(rest[0].decode())
    if code == b"CONFLICT":
        raise SessionConflictError(
            session_id=session_id,
            branch_id=MAIN_BRANCH,
            head=head,
            head_found=rest[0].decode(),
        )
    if code == b"LANE_BUSY":
        run_id, worker, intent = (word.decode() for word in rest)
        raise LaneBusyError(
            session_id=session_id,
            branch_id=MAIN_BRANCH,
            run_id=run_id,
            worker=worker,
            held=intent == "hold",
        )
    raise branch_refusal(code, rest, session_id)
