"""A call that stops in time, as it does with its run."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from runlane.worker.control.cancellation import CallToken, CancellationToken


@contextmanager
def time_limit(
    cancellation: CancellationToken, seconds: float | None
) -> Generator[CancellationToken]:
    """Yield a token that stops with another one, or once the time is up.

    Args:
        cancellation: The other one; whoever cancels the token cancels it.
        seconds: From now on; None for no limit.
    """
    if seconds is None or cancellation.cancelled:
        yield cancellation
        return
    token = CallToken(cancellation)
    late = f"no result within {seconds} s, which the run had left"
    timer = asyncio.get_running_loop().call_later(seconds, token.stop, late)
    try:
        yield token
    finally:
        token.unlink()
        timer.cancel()


class MiddlewareClock:
    """Stops a call whose middlewares take too long; the time of the tool is not theirs.

    Args:
        token: The call's.
        seconds: That they may take before the tool is called, and again once it has ended; None
            for no limit.

    Attributes:
        expired: Whether they took longer.
    """

    def __init__(self, token: CallToken, seconds: float | None) -> None:
        self.expired = False
        self.reason = f"the middlewares of the call gave no result within {seconds} s"
        self._token = token
        self._seconds = seconds
        self._tools = 0
        self._ended = False
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def running(self) -> Generator[None]:
        """Measure."""
        self._start()
        try:
            yield
        finally:
            self._ended = True
            self._stop()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Measure nothing while the tool is called."""
        self._tools += 1
        self._stop()
        try:
            yield
        finally:
            self._tools -= 1
            self._start()

    def _start(self) -> None:
        if self._seconds is not None and not self._tools and not self._ended:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._expire)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        self.expired = True
        self._token.stop(self.reason)
