"""How a run is told to stop."""

from runlane.worker.control.cancellation import AgentCancelledError, CancellationToken

__all__ = ["AgentCancelledError", "CancellationToken"]
