"""What a run is told from outside: to stop, or what its model is to hear."""

from runlane.worker.control.cancellation import (
    AgentCancelledError,
    CancellationToken,
    OutOfTimeError,
)
from runlane.worker.control.steering import SteeringInbox

__all__ = ["AgentCancelledError", "CancellationToken", "OutOfTimeError", "SteeringInbox"]
