"""A call that ends: with its result, or because somebody or the clock stopped it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from runlane.journal.errors import RunlaneError
from runlane.worker.control.cancellation import AgentCancelledError, CancellationToken, held
from runlane.worker.tools.texts import describe

T = TypeVar("T")


class CallStoppedError(RunlaneError):
    """A call was stopped before it had a result.

    Attributes:
        reason: Why.
        cancelled: Whether the run was cancelled; else the call had run out of time.
        abandoned: Whether it did not stop when asked to, and may still go on.
    """

    def __init__(self, reason: str, *, cancelled: bool, abandoned: bool) -> None:
        self.reason = reason
        self.cancelled = cancelled
        self.abandoned = abandoned
        super().__init__(reason)


async def contain(call: Callable[[], Awaitable[T]], *, who: str) -> T:
    """Return what `call` gives; what it raises ends the call and nothing else.

    Left to itself, a SystemExit would end the worker, and every other run with it.

    Args:
        call: Starts the work.
        who: Whose work it is, for error texts.

    Raises:
        RuntimeError: It raised something that is neither an `Exception` nor listed here.
        CancelledError: As it came.
        KeyboardInterrupt: As it came.
        Exception: Whatever the call raises.
    """
    try:
        return await call()
    except (Exception, asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise RuntimeError(f"the {who} raised {describe(error, typed=True)}") from error


def asked_to_stop() -> bool:
    """Return whether somebody cancelled the current task; a CancelledError alone is no proof."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def run_bounded(
    call: Callable[[], Awaitable[T]],
    *,
    cancellation: CancellationToken,
    timeout_s: float | None,
    grace_s: float,
) -> T:
    """Return what `call` gives, also if it gives it after it was asked to stop.

    If the task that waits here is cancelled, the call is asked to stop as well, and the
    cancellation goes on once it has, or after the grace period.

    Args:
        call: Starts the work; not called if the run is cancelled already.
        cancellation: Asks the call to stop.
        timeout_s: Seconds after which it is asked to stop; None for no limit.
        grace_s: Seconds to wait for a call that was asked to stop, before it is abandoned.

    Raises:
        CallStoppedError: There was no result.
        Exception: Whatever the call raises.
    """
    if cancellation.cancelled:
        raise CallStoppedError(cancellation.reason, cancelled=True, abandoned=False)
    task = held(asyncio.ensure_future(contain(call, who="tool")))
    try:
        await cancellation.first_of(task, timeout_s)
    finally:
        stopped = not task.done()
        if stopped:
            task.cancel()
            await asyncio.wait({task}, timeout=grace_s)
    return _result(task, stopped=stopped, cancellation=cancellation, timeout_s=timeout_s)


def _result(
    task: asyncio.Future[T],
    *,
    stopped: bool,
    cancellation: CancellationToken,
    timeout_s: float | None,
) -> T:
    cancelled = cancellation.cancelled
    reason = cancellation.reason if cancelled else f"no result within {timeout_s} s"
    if not task.done():
        raise CallStoppedError(reason, cancelled=cancelled, abandoned=True)
    try:
        return task.result()
    except (asyncio.CancelledError, AgentCancelledError) as error:
        if stopped or cancelled:
            raise CallStoppedError(reason, cancelled=cancelled, abandoned=False) from error
        raise RuntimeError("the tool cancelled itself") from error
