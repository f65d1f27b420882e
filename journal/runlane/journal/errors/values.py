"""Values, and things that are not there."""

from runlane.journal.errors.base import RunlaneError


class InvalidInputError(RunlaneError, ValueError):
    """A value of the caller is refused; nothing was done."""


class PayloadTooLargeError(InvalidInputError):
    """A payload is over the limit; nothing was stored."""

    def __init__(self, *, what: str, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(
            f"{what} has {size} bytes, over the limit of {limit}; nothing was stored. "
            "Send a reference to it instead"
        )


class JournalFormatError(InvalidInputError):
    """A file of another system breaks its format, or says what no journal here can store.

    Attributes:
        reason: What is wrong.
        line: Where, from 1; None for a file that is one document.
    """

    def __init__(self, reason: str, *, line: int | None = None) -> None:
        self.reason = reason
        self.line = line
        place = "the file" if line is None else f"line {line} of the file"
        super().__init__(f"{place} cannot be imported: {reason}; nothing was stored")


class UndecodableError(RunlaneError):
    """Stored bytes are damaged, or of a version that this runlane does not know."""


class RecordMissingError(UndecodableError):
    """The journal lacks a record that others build on."""

    def __init__(self, session_id: str, record_id: str) -> None:
        self.session_id = session_id
        self.record_id = record_id
        super().__init__(
            f"session {session_id!r}: record {record_id} is gone, and others build on it; the "
            "server has lost it, or the journal is damaged"
        )


class NotFoundError(RunlaneError, LookupError):
    """No such thing in this deployment."""


class UnknownRunError(NotFoundError):
    """No run has this id under this prefix, or in the session."""

    def __init__(
        self,
        run_id: str,
        *,
        place: str = "in this deployment: check the id and RUNLANE_PREFIX; or it ended longer ago "
        "than RUNLANE_KEEP_RUNS_S, or its session was deleted",
    ) -> None:
        self.run_id = run_id
        super().__init__(f"no run {run_id!r} {place}")


class UnknownSessionError(NotFoundError):
    """No session has this id under this prefix."""

    def __init__(self, session_id: str, *, advice: str = "check the id and RUNLANE_PREFIX") -> None:
        self.session_id = session_id
        super().__init__(f"no session {session_id!r} in this deployment; {advice}")


class UnknownBranchError(NotFoundError):
    """The session has no branch of this name."""

    def __init__(self, session_id: str, branch_id: str, *, known: tuple[str, ...] = ()) -> None:
        self.session_id = session_id
        self.branch_id = branch_id
        names = ", ".join(sorted({"main", *known} - {"@control"}))
        super().__init__(
            f"session {session_id!r} has no branch {branch_id!r} (it has: {names}); make it by "
            "fork()"
        )


class UnknownRecordError(NotFoundError):
    """No branch of the session has a record with this id."""

    def __init__(self, session_id: str, record_id: str, *, control: bool = False) -> None:
        self.session_id = session_id
        self.record_id = record_id
        super().__init__(
            f"record {record_id} of session {session_id!r} is of the control chain: no branch "
            "leads through it; use a record of a branch"
            if control
            else f"session {session_id!r} has no record {record_id!r}; use the record_id of a "
            "record, or the cursor of an event"
        )


class UnknownBlobError(NotFoundError):
    """The session keeps no content with this digest."""

    def __init__(self, session_id: str, digest: str) -> None:
        self.session_id = session_id
        self.digest = digest
        super().__init__(
            f"session {session_id!r} has no blob {digest}; use what a tool_completed record of "
            "this session names as `full` or in a block, or its digest"
        )


class UnknownAgentError(NotFoundError):
    """No worker of this deployment has ever served the agent."""

    def __init__(self, agent: str, known: tuple[str, ...]) -> None:
        self.agent = agent
        self.known = known
        names = ", ".join(known) or "none"
        super().__init__(
            f"no worker has ever served an agent {agent!r} (known: {names}); nothing was stored. "
            "Check the name, or start a worker that serves it"
        )
