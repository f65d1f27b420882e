"""What the state of a session or lane does not allow; nothing was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runlane.journal.errors.base import RunlaneError

if TYPE_CHECKING:
    from runlane.journal.wire.control import ContinueRejectedReason, ControlReceipt


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


class SessionClosedError(RefusedError):
    """The session takes no work for the moment: it is being deleted or imported."""

    def __init__(self, session_id: str, state: str) -> None:
        self.session_id = session_id
        self.state = state
        super().__init__(
            f"session {session_id!r} is closed ({state.partition(':')[0]}); try again once that is "
            "over, or delete the session"
        )


class SessionExistsError(RefusedError):
    """A session cannot be imported under a name that is taken."""

    def __init__(self, session_id: str, state: str) -> None:
        self.session_id = session_id
        self.state = state
        if state.startswith("importing"):
            text = (
                "is being imported already; nothing was stored. Should nobody be at it any more, "
                "its name is free again after a minute"
            )
        elif state == "deleting":
            text = "is being deleted; nothing was stored. Try again once it is gone"
        else:
            text = "exists already; nothing was stored. Choose another name, or delete it before"
        super().__init__(f"session {session_id!r} {text}")


class ImportLostError(RefusedError):
    """The server has no more what was imported so far: it took too long, or was lost."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            f"the import of session {session_id!r} broke off: the server dropped or lost what was "
            "sent so far, and nobody sees anything of it. Import the file again"
        )


class BranchExistsError(RefusedError):
    """The session has a branch of this name already."""

    def __init__(self, *, session_id: str, branch_id: str) -> None:
        self.session_id = session_id
        self.branch_id = branch_id
        super().__init__(
            f"session {session_id!r} has a branch {branch_id!r} already; choose another name"
        )


class LaneBusyError(RefusedError):
    """A run is active in the lane, or it is held.

    Attributes:
        session_id: With `branch_id`, the lane.
        branch_id: The branch.
        run_id: The run, or the hold.
        worker: Who has it; empty if nobody does.
    """

    def __init__(
        self, *, session_id: str, branch_id: str, run_id: str, worker: str = "", held: bool = False
    ) -> None:
        self.session_id = session_id
        self.branch_id = branch_id
        self.run_id = run_id
        self.worker = worker
        lane = f"branch {branch_id!r} of session {session_id!r}"
        super().__init__(
            f"{lane} is {_held_by(worker)}; wait until it lets go, or steal the lane"
            if held
            else f"run {run_id} is active in {lane}; wait for it, or abort it"
        )


class UnfinishedRunError(RefusedError):
    """A run is open at this record: no branch can begin there, and none can follow it."""

    def __init__(
        self,
        *,
        session_id: str,
        record_id: str,
        run_id: str,
        advice: str = "choose a record at which it has ended or not begun",
    ) -> None:
        self.session_id = session_id
        self.record_id = record_id
        self.run_id = run_id
        super().__init__(
            f"run {run_id} is open at record {record_id} of session {session_id!r}; {advice}"
        )


class NotAncestorError(RefusedError):
    """The record does not lie on the way to the head of the branch."""

    def __init__(self, *, session_id: str, branch_id: str, record_id: str) -> None:
        self.session_id = session_id
        self.branch_id = branch_id
        self.record_id = record_id
        super().__init__(
            f"record {record_id} is no ancestor of the head of branch {branch_id!r} of session "
            f"{session_id!r}; name the branch that it belongs to"
        )


class RetryRejectedError(RefusedError):
    """The run has no task that could be given again."""

    def __init__(self, *, session_id: str, run_id: str, reason: str) -> None:
        self.session_id = session_id
        self.run_id = run_id
        super().__init__(f"run {run_id} of session {session_id!r} cannot be retried: {reason}")


class SessionLockTimeoutError(RefusedError, TimeoutError):
    """The lane was not free in time."""

    def __init__(
        self,
        *,
        session_id: str,
        branch_id: str,
        timeout: float,
        run_id: str,
        worker: str,
        held: bool,
    ) -> None:
        self.session_id = session_id
        self.branch_id = branch_id
        self.timeout = timeout
        self.run_id = run_id
        self.worker = worker
        if held:
            why, advice = f"it is {_held_by(worker)}", "steal the lane"
        else:
            run = (
                f"run {run_id} of {worker}" if worker else f"run {run_id}, which nobody holds yet,"
            )
            why, advice = f"{run} is active in it", "abort it"
        super().__init__(
            f"branch {branch_id!r} of session {session_id!r} was not free within {timeout:g} s: "
            f"{why}; nothing was done. Wait longer, or {advice}"
        )


def _held_by(holder: str) -> str:
    return f"held by {holder}" if holder else "held, and its holder has not taken it yet"
