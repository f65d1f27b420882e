"""A call of an application's hook: bounded, and stopped with its run."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from runlane.worker.behavior.errors import BehaviorHookError
from runlane.worker.control import AgentCancelledError, CancellationToken
from runlane.worker.tools.execution import CallStoppedError, asked_to_stop, contain, run_bounded
from runlane.worker.tools.texts import describe

HOOK_GRACE_S: Final = 5.0
"""Seconds to wait for a hook that was asked to stop, before it is abandoned."""

T = TypeVar("T")
logger = structlog.get_logger(__name__)


async def ask(
    hook: str,
    phase: str,
    call: Callable[[], Awaitable[T]],
    *,
    cancellation: CancellationToken,
    timeout_s: float | None,
    grace_s: float = HOOK_GRACE_S,
) -> T:
    """Return what a hook says, also if it says it after it was asked to stop.

    Args:
        hook: Whose it is, for error texts.
        phase: The moment.
        call: Starts it.
        cancellation: Stops it.
        timeout_s: Seconds that it may take; None for no limit.
        grace_s: Seconds to wait for one that was asked to stop.

    Raises:
        AgentCancelledError: The run was told to stop.
        BehaviorHookError: It failed, took too long, or cancelled itself.
    """
    try:
        return await run_bounded(
            lambda: _contained(hook, phase, call, cancellation),
            cancellation=cancellation,
            timeout_s=timeout_s,
            grace_s=grace_s,
        )
    except CallStoppedError as stop:
        if stop.abandoned:
            logger.warning("hook_abandoned", hook=hook, phase=phase, cancelled=stop.cancelled)
        if stop.cancelled:
            raise AgentCancelledError(stop.reason) from stop
        raise BehaviorHookError(hook, phase, stop.reason) from stop
    except BehaviorHookError:
        raise
    except Exception as error:
        raise BehaviorHookError(hook, phase, describe(error, typed=True)) from error


async def _contained(
    hook: str, phase: str, call: Callable[[], Awaitable[T]], cancellation: CancellationToken
) -> T:
    try:
        return await contain(call, who="hook")
    except (asyncio.CancelledError, AgentCancelledError) as error:
        if asked_to_stop() or cancellation.cancelled:
            raise
        raise BehaviorHookError(hook, phase, "it cancelled itself") from error
