"""nothing → a branch."""

import msgspec

from runlane.journal.errors import (
    BranchExistsError,
    RunlaneError,
    SessionClosedError,
    UnknownSessionError,
)
from runlane.journal.ids import new_request_id
from runlane.journal.partition import Partition
from runlane.journal.wire.codec import encode_body
from runlane.journal.wire.tree import BranchCreated, BranchPromoted, Jump, LastRun


async def create_branch(
    partition: Partition, session_id: str, jump: Jump, *, last_run: LastRun | None
) -> str:
    """Begin a branch; return the record id of its head.

    Args:
        partition: Where the session lives.
        session_id: The session.
        jump: The branch and its base, at which no run is open.
        last_run: The run that ended last at the base.

    Raises:
        BranchExistsError: The session has a branch of this name.
        UnknownSessionError: There is no such session.
        SessionClosedError: It is being deleted or imported.
        ServerUnavailableError: The server is away.
    """
    assert jump.intent is not None
    body = BranchCreated(
        intent=jump.intent,
        source_branch_id=jump.source_branch_id,
        retried_run_id=jump.retried_run_id,
    )
    request_id = new_request_id()
    code, *rest = await partition.transition(
        "create_branch",
        request_id,
        session_id,
        jump.branch_id,
        *jump_args(jump, body, last_run, request_id),
    )
    if code in (b"OK", b"DUP"):
        return str(rest[0].decode())
    if code == b"BRANCH_EXISTS":
        raise BranchExistsError(session_id=session_id, branch_id=jump.branch_id)
    raise branch_refusal(code, rest, session_id)


def jump_args(
    jump: Jump, body: BranchCreated | BranchPromoted, last_run: LastRun | None, request_id: str
) -> list[str | bytes]:
    """Return the arguments of a jump, as both scripts take them."""
    last = (last_run.run_id, last_run.stop_reason) if last_run else ("", "")
    return [jump.base_id, encode_body(body)[1], *last, request_id, msgspec.msgpack.encode(jump)]


def branch_refusal(code: bytes, rest: list[bytes], session_id: str) -> RunlaneError:
    """Return what to raise when a session takes no branch."""
    if code == b"UNKNOWN_SESSION":
        return UnknownSessionError(session_id)
    return SessionClosedError(session_id, rest[0].decode())
