"""What a model reads of a call that gave no result."""

import logging

from runlane.worker.control.cancellation import AgentCancelledError
from runlane.worker.tools.effects import ToolEffect
from runlane.worker.tools.errors import ToolError
from runlane.worker.tools.execution import CallStoppedError
from runlane.worker.tools.middleware.chain import RefusedCallError, SlowMiddlewareError
from runlane.worker.tools.prepared import PreparedCall
from runlane.worker.tools.results import ToolResult
from runlane.worker.tools.texts import describe
from runlane.worker.tools.validation import UnfitError

logger = logging.getLogger(__name__)


def failure_of(
    prepared: PreparedCall, error: Exception, *, called: bool = True, made: bool = False
) -> ToolResult:
    """Return what the model reads of a call that gave no result.

    Args:
        prepared: The call.
        error: What it raised.
        called: Whether the tool was called.
        made: Whether it gave a result, which is lost.
    """
    name = prepared.definition.name
    if isinstance(error, UnfitError):
        return ToolResult.invalid(name, error.errors, truncated=error.truncated)
    if isinstance(error, CallStoppedError):
        return _stopped(prepared, error, called=called)
    if isinstance(error, SlowMiddlewareError):
        return _slow(prepared, error, called=called, made=made)
    if isinstance(error, AgentCancelledError):
        return ToolResult.cancelled(name, error.reason)
    if not isinstance(error, ToolError | RefusedCallError):
        log_failure(name, "failed", error)
    return _failed(name, describe(error), made=made)


def log_failure(tool: str, what: str, error: Exception) -> None:
    """Log what a tool raised, and where; not what it says, which may hold arguments.

    Args:
        tool: Its name.
        what: How the call went.
        error: What it raised.
    """
    kind = type(error)
    unsaid = type(kind.__name__, (Exception,), {"__module__": kind.__module__})()
    logger.warning("tool %s %s", tool, what, exc_info=unsaid.with_traceback(error.__traceback__))


def _failed(name: str, text: str, *, made: bool) -> ToolResult:
    return ToolResult.failed(name, f"the call was made, but then: {text}" if made else text)


def _slow(
    prepared: PreparedCall, error: SlowMiddlewareError, *, called: bool, made: bool
) -> ToolResult:
    name = prepared.definition.name
    logger.warning("tool %s: %s", name, error)
    if prepared.effect is ToolEffect.SIDE_EFFECTING and called and not made:
        return ToolResult.unknown(name)
    return _failed(name, str(error), made=made)


def _stopped(prepared: PreparedCall, stop: CallStoppedError, *, called: bool) -> ToolResult:
    name = prepared.definition.name
    if stop.abandoned:
        logger.warning("tool %s ignores that it was stopped (%s)", name, stop.reason)
        if prepared.effect is ToolEffect.SIDE_EFFECTING and called:
            return ToolResult.unknown(name)
    if stop.cancelled:
        return ToolResult.cancelled(name, stop.reason)
    return ToolResult.failed(name, f"{stop.reason}; the call was stopped, perhaps half done")
