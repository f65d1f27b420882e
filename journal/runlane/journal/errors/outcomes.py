"""How waiting for a run may end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runlane.journal.errors.base import RunlaneError

if TYPE_CHECKING:
    from runlane.journal.wire.results import AgentRunResult


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
