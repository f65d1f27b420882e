"""A question to an application about a call: bounded, and stopped with its run."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from runlane.worker.control.cancellation import AgentCancelledError, CancellationToken
from runlane.worker.tools.execution import CallStoppedError, run_bounded

ANSWER_TIMEOUT_S: Final = 60.0
"""Seconds that a policy may take."""
ANSWER_GRACE_S: Final = 1.0
"""Seconds to wait for an answer that is no longer wanted, before it is abandoned."""

T = TypeVar("T")


async def answer_of(
    question: Callable[[], Awaitable[T]],
    cancellation: CancellationToken,
    timeout_s: float = ANSWER_TIMEOUT_S,
) -> T:
    """Return the answer.

    Args:
        question: Asks.
        cancellation: Stops it.
        timeout_s: Seconds that it may take.

    Raises:
        AgentCancelledError: The run was told to stop.
        TimeoutError: There was no answer in time.
        Exception: Whatever the question raises.
    """
    try:
        return await run_bounded(
            question, cancellation=cancellation, timeout_s=timeout_s, grace_s=ANSWER_GRACE_S
        )
    except CallStoppedError as stop:
        if stop.cancelled:
            raise AgentCancelledError(stop.reason) from stop
        raise TimeoutError(stop.reason) from stop
