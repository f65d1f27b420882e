"""Who may not write any more; nothing was written."""

from runlane.journal.errors.base import RunlaneError


class WriteRefusedError(RunlaneError):
    """A worker may not write to the branch any more; nothing was written, and nothing may be.

    Drop the run without a record: whoever holds the lease now carries it on.
    """


class SessionFencedError(WriteRefusedError):
    """Another fence holds the lane."""

    def __init__(self, *, run_id: str, fence: str, fence_held: str) -> None:
        self.run_id = run_id
        self.fence = fence
        self.fence_held = fence_held
        super().__init__(
            f"run {run_id}: the lane moved from fence {fence!r} to {fence_held or 'none'!r}; "
            "nothing was written"
        )


class SessionConflictError(WriteRefusedError):
    """The branch has another head than the one that the writer built on."""

    def __init__(self, *, session_id: str, branch_id: str, head: str, head_found: str) -> None:
        self.session_id = session_id
        self.branch_id = branch_id
        self.head = head
        self.head_found = head_found
        super().__init__(
            f"branch {branch_id!r} of session {session_id!r}: expected head {head or 'none'!r}, "
            f"found {head_found or 'none'!r}; nothing was written. Build on the head that is there"
        )


class SessionDivergedError(WriteRefusedError):
    """The server lost records that it had acknowledged, and somebody else may hold the lane now.

    Attributes:
        last_known: Record id of the last record that the writer knew.
        surviving: Record id of the branch's head now; empty if the server has no record of it.
        lost_branch: The branch that keeps the lost records; None if they could not be kept.
    """

    def __init__(
        self,
        *,
        session_id: str,
        branch_id: str,
        last_known: str,
        surviving: str,
        lost_branch: str | None,
        why_not: str = "",
    ) -> None:
        self.session_id = session_id
        self.branch_id = branch_id
        self.last_known = last_known
        self.surviving = surviving
        self.lost_branch = lost_branch
        kept = f"kept as branch {lost_branch!r}" if lost_branch else f"gone ({why_not})"
        super().__init__(
            f"branch {branch_id!r} of session {session_id!r}: the server has lost records up to "
            f"{last_known}, its head is {surviving or 'none'!r} now; the lost ones are {kept}. "
            "Compare both, and fork or promote the one to go on with"
        )


class ArchiverFencedError(WriteRefusedError):
    """Another archiver has the session, or it is being deleted."""

    def __init__(self, *, session_id: str, token_held: str) -> None:
        self.session_id = session_id
        self.token_held = token_held
        super().__init__(
            f"session {session_id!r}: its archiving moved to {token_held or 'nobody'!r}; nothing "
            "was noted or dropped"
        )


class BlobMissingError(WriteRefusedError):
    """A record names bytes that the session does not keep."""

    def __init__(self, *, session_id: str, digest: str) -> None:
        self.session_id = session_id
        self.digest = digest
        super().__init__(
            f"session {session_id!r} has no blob {digest}; nothing was written. Store it first"
        )
