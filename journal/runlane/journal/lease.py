"""The right to carry on one run: what claim gives and every write shows."""

from msgspec import Struct

from runlane.journal.wire.records import AttemptCause


class Lease(Struct, frozen=True, kw_only=True):
    """One attempt of one run by one worker.

    Attributes:
        run_id: The run.
        session_id: With `branch_id`, the lane.
        branch_id: The branch that its records go to.
        queue: The queue that it came from and returns to.
        fence: `<n>:<nonce>`, compared for equality by every script that writes.
        attempt: 1 for the first try; an identity, never used twice.
        cause: Why this is not the first attempt; None if it is.
    """

    run_id: str
    session_id: str
    branch_id: str
    queue: str
    fence: str
    attempt: int
    cause: AttemptCause | None = None
