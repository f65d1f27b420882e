"""queued, or held by the caller → failed or cancelled, without executing it."""

from typing import Final

import msgspec

from runlane.journal.errors import UnknownRunError
from runlane.journal.partition import Partition
from runlane.journal.wire.results import AgentRunResult, RunStatus, StopReason

DISCARDED: Final = AgentRunResult(
    status=RunStatus.CANCELLED,
    stop_reason=StopReason.SUPERSEDED,
    error="discarded: the run before this follow-up did not complete",
)
"""The end of a follow-up that was bound to the success of the run before it."""


def encode_result(result: AgentRunResult) -> bytes:
    """Return the bytes of a result as scripts embed them: never compressed."""
    return msgspec.msgpack.encode(result)


async def settle(
    partition: Partition,
    run_id: str,
    result: AgentRunResult,
    *,
    dead_reason: str = "",
    fence: str = "",
) -> bool:
    """End a run that nobody executes; return False if it had ended or is held by somebody.

    Args:
        partition: Where the session lives.
        run_id: The run.
        result: How it ends.
        dead_reason: Why it is listed as a dead letter; empty if it is not.
        fence: Of the worker that holds it and gives it up; empty if nobody holds it.

    Raises:
        UnknownRunError: No such run.
        ServerUnavailableError: The server is away.
    """
    code, *_ = await partition.transition(
        "settle",
        run_id,
        run_id,
        result.status,
        result.stop_reason,
        encode_result(result),
        encode_result(DISCARDED),
        dead_reason,
        fence,
        partition.keep_runs_ms,
    )
    if code == b"UNKNOWN_RUN":
        raise UnknownRunError(run_id)
    return bool(code == b"OK")
