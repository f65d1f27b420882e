"""What can go wrong, as one tree.

RunlaneError
├── InvalidInputError (ValueError)       the caller's value is refused; nothing was done
│   └── PayloadTooLargeError
├── UndecodableError                     stored bytes are damaged or of a newer version
├── NotFoundError (LookupError)
│   ├── UnknownRunError · UnknownSessionError · UnknownAgentError
├── RefusedError                         the state of the lane does not allow it; nothing was done
│   ├── IdempotencyConflictError · AgentMismatchError · ContinueRejectedError
│   └── FollowUpRejectedError
├── WriteRefusedError                    a worker may not write; nothing was written
│   ├── SessionFencedError · SessionConflictError
├── ServerError                          the Redis server
│   ├── ServerUnavailableError (ConnectionError) · SessionOutcomeUnknownError
│   └── ServerUnsuitableError · ServerLaunchError
├── ResultTimeoutError (TimeoutError)
└── AgentRunError                        a run did not complete
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runlane.journal.wire.control import ContinueRejectedReason, ControlReceipt
    from runlane.journal.wire.results import AgentRunResult


class RunlaneError(Exception):
    """Base of every error that runlane raises on purpose."""


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


class UndecodableError(RunlaneError):
    """Stored bytes are damaged, or of a version that this runlane does not know."""


class NotFoundError(RunlaneError, LookupError):
    """No such thing in this deployment."""


class UnknownRunError(NotFoundError):
    """No run has this id under this prefix."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"no run {run_id!r} in this deployment; check the id and RUNLANE_PREFIX")


class UnknownSessionError(NotFoundError):
    """No session has this id under this prefix."""

    def __init__(self, session_id: str, *, advice: str = "check the id and RUNLANE_PREFIX") -> None:
        self.session_id = session_id
        super().__init__(f"no session {session_id!r} in this deployment; {advice}")


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


class RefusedError(RunlaneError):
    """The state of the lane does not allow the request; nothing was done."""


class IdempotencyConflictError(RefusedError):
    """The idempotency key was used before, with another body."""

    def __init__(self, *, key: str, run_id: str) -> None:
        self.key = key
        self.run_id = run_id
        super().__init__(
            f"idempotency key {key!r} belongs to run {run_id} with another body; "
            "nothing was stored. Use a new key for a new request"
        )


class AgentMismatchError(RefusedError):
    """The session belongs to another agent."""

    def __init__(self, *, session_id: str, agent: str, bound_agent: str) -> None:
        self.session_id = session_id
        self.agent = agent
        self.bound_agent = bound_agent
        super().__init__(
            f"session {session_id!r} belongs to agent {bound_agent!r}, not {agent!r}; "
            "nothing was stored"
        )


class ContinueRejectedError(RefusedError):
    """The lane cannot be continued now."""

    def __init__(
        self, *, session_id: str, branch_id: str, reason: ContinueRejectedReason, run_id: str | None
    ) -> None:
        self.session_id = session_id
        self.branch_id = branch_id
        self.reason = reason
        self.run_id = run_id
        about = f" (run {run_id})" if run_id else ""
        super().__init__(
            f"branch {branch_id!r} of session {session_id!r} cannot be continued: {reason}{about}"
        )


class FollowUpRejectedError(RefusedError):
    """No run is active that the follow-up could follow."""

    def __init__(self, *, session_id: str, branch_id: str, receipt: ControlReceipt) -> None:
        self.session_id = session_id
        self.branch_id = branch_id
        self.receipt = receipt
        super().__init__(
            f"branch {branch_id!r} of session {session_id!r} refuses the follow-up: "
            f"{receipt.status}. Use run() when nothing is active"
        )


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

    def __init__(self, *, run_id: str, head: str, head_found: str) -> None:
        self.run_id = run_id
        self.head = head
        self.head_found = head_found
        super().__init__(
            f"run {run_id}: expected head {head or 'none'!r}, found {head_found or 'none'!r}; "
            "nothing was written"
        )


class ServerError(RunlaneError):
    """The Redis server."""


class ServerUnavailableError(ServerError, ConnectionError):
    """The server does not answer.

    Attributes:
        sent: Whether the request may have reached it.
    """

    def __init__(self, detail: str, *, sent: bool = False) -> None:
        self.sent = sent
        super().__init__(detail)


class SessionOutcomeUnknownError(ServerUnavailableError):
    """A transition was sent, and no reply came before the deadline: it may have happened."""

    def __init__(self, *, transition: str, request_id: str, detail: str) -> None:
        self.transition = transition
        self.request_id = request_id
        super().__init__(
            f"{transition} {request_id}: sent, but no reply came ({detail}). "
            "Send the same request again: it is recognised and happens once",
            sent=True,
        )


class ServerUnsuitableError(ServerError):
    """The server answers, but cannot be used: version, password, mode or stored settings."""


class ServerLaunchError(ServerError):
    """No server could be started on this machine."""


class ResultTimeoutError(RunlaneError, TimeoutError):
    """A run did not end before the caller's deadline; it goes on."""

    def __init__(self, *, run_id: str, timeout: float) -> None:
        self.run_id = run_id
        super().__init__(f"run {run_id} has not ended within {timeout:g} s; it goes on")


class AgentRunError(RunlaneError):
    """A run ended without completing; `result` says how."""

    def __init__(self, result: AgentRunResult) -> None:
        self.result = result
        super().__init__(
            f"run ended as {result.status}/{result.stop_reason}: {result.error or 'no detail'}"
        )
