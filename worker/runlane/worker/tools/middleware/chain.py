"""One call through all middlewares to its handler."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from msgspec.structs import replace

from runlane.journal.errors import RunlaneError
from runlane.worker.control.cancellation import CallToken
from runlane.worker.tools.context import ToolCallContext
from runlane.worker.tools.effects import StepOutcome, ToolEffect
from runlane.worker.tools.execution import CallStoppedError, run_bounded
from runlane.worker.tools.middleware.protocol import ToolMiddleware
from runlane.worker.tools.middleware.time_limit import MiddlewareClock
from runlane.worker.tools.texts import builtins

Begin: TypeAlias = Callable[[ToolCallContext], Awaitable[None]]
"""Called right before a tool is: what it raises ends the call."""


class RefusedCallError(RunlaneError):
    """A middleware asked for what must not happen; the text is for the model."""


class SlowMiddlewareError(RunlaneError):
    """The middlewares of a call took too long; the text is for the model."""


class Chain:
    """One call on its way.

    A middleware is stopped with the run, or by its own timeout; what it swallows, or leaves
    behind, cannot begin a call, nor hide what became of one. So the intent and the tool have tasks
    of their own.

    Args:
        middlewares: Outermost first.
        context: The call.
        check: Returns the arguments that it is made with, of those that middlewares hand on the
            first time; nothing else of the context can be changed, nor they any more.
        begin: Called once, before the handler is.
        dispatch: Calls the handler; it stops by itself with the token of what it is given.
        timeout_s: Seconds that the middlewares may take before the tool is called, and again once
            it has ended; None for no limit.

    Attributes:
        failed_begin: What `begin` raised: it outlives a middleware that swallows it.
    """

    def __init__(
        self,
        middlewares: Sequence[ToolMiddleware],
        context: ToolCallContext,
        *,
        check: Callable[[dict[str, Any]], dict[str, Any]],
        begin: Begin,
        dispatch: Callable[[ToolCallContext], Awaitable[StepOutcome]],
        timeout_s: float | None,
    ) -> None:
        self.failed_begin: BaseException | None = None
        self._middlewares = middlewares
        self._context = context
        self._once = context.tool_definition.effect is ToolEffect.SIDE_EFFECTING
        self._check = check
        self._begin = begin
        self._dispatch = dispatch
        self._beginning: asyncio.Task[None] | None = None
        self._arguments: dict[str, Any] = {}
        self._calls: list[asyncio.Task[StepOutcome]] = []
        self._given_up: set[asyncio.Task[StepOutcome]] = set()
        self._token = CallToken(context.cancellation)
        self._clock = MiddlewareClock(self._token, timeout_s)
        self._closed = False
        self._worker = asyncio.current_task()
        self._worker_cancels = self._worker.cancelling() if self._worker else 0

    @property
    def called(self) -> bool:
        """Whether the tool was called."""
        return bool(self._calls)

    @property
    def made(self) -> bool:
        """Whether the tool gave a result."""
        return any(
            call.done() and not call.cancelled() and call.exception() is None
            for call in self._calls
        )

    @property
    def lost(self) -> CallStoppedError | None:
        """How a call with side effects was stopped that may still go on; None if none may."""
        for call in self._calls if self._once else ():
            error = call.exception() if call.done() and not call.cancelled() else None
            if isinstance(error, CallStoppedError) and error.abandoned:
                return error
        return None

    async def outcome(self, grace_s: float) -> StepOutcome:
        """Return what the outermost middleware makes of the call.

        If it was stopped, or did not wait for a call with side effects, it is what the tool gave.

        Args:
            grace_s: Seconds to wait for middlewares that were asked to stop.

        Raises:
            CallStoppedError: The run was stopped before there was a result.
            SlowMiddlewareError: There was none in time.
            Exception: Whatever a middleware or the handler raises.
        """
        try:
            with self._clock.running():
                return await self._outcome(grace_s)
        except asyncio.CancelledError:  # the worker ends
            self._closed = True
            await self._cancel()
            raise
        finally:
            self._token.unlink()

    async def _outcome(self, grace_s: float) -> StepOutcome:
        arguments = builtins(self._context.arguments)
        own = replace(self._context, arguments=arguments, cancellation=self._token)
        try:
            outcome = await run_bounded(
                lambda: self._from(0, own),
                cancellation=self._token,
                timeout_s=None,
                grace_s=grace_s,
            )
        except Exception as error:
            if self._clock.expired:
                await self._close()
                raise SlowMiddlewareError(self._clock.reason) from error
            given = await self._close(error)
            if given is None:
                raise
            return given
        return await self._close() or outcome

    async def _from(self, place: int, context: ToolCallContext) -> StepOutcome:
        if place == len(self._middlewares):
            with self._clock.paused():
                return await self._call(context.arguments)
        middleware = self._middlewares[place]
        outcome = await middleware(context, partial(self._from, place + 1))
        if not isinstance(cast("object", outcome), StepOutcome):
            kind = type(outcome).__name__
            raise TypeError(f"{type(middleware).__name__} returned {kind}, not a StepOutcome")
        return outcome

    async def _call(self, arguments: dict[str, Any]) -> StepOutcome:
        self._refuse_what_must_not_happen()
        self._token.raise_if_cancelled()
        if self._beginning is None:
            self._arguments = self._check(arguments)
            self._beginning = asyncio.create_task(self._begin_with(self._arguments))
            self._beginning.add_done_callback(_look_at)
        await asyncio.shield(self._beginning)
        if self._has_ended():
            raise RefusedCallError("the call has ended")
        token = CallToken(self._token)
        final = replace(self._context, arguments=self._arguments, cancellation=token)
        call = asyncio.ensure_future(self._dispatch(final))
        call.add_done_callback(_look_at)
        call.add_done_callback(lambda _: token.unlink())
        self._calls.append(call)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            if not token.cancelled:
                self._given_up.add(call)
                token.stop("a middleware gave the call up")
                await asyncio.wait({call})
            raise

    def _has_ended(self) -> bool:
        """Return whether it is over, or the worker ends; a middleware may have swallowed that."""
        worker = self._worker
        return self._closed or (worker is not None and worker.cancelling() > self._worker_cancels)

    def _refuse_what_must_not_happen(self) -> None:
        if self._has_ended():
            raise RefusedCallError("the call has ended")
        if self._once and self._beginning is not None:
            raise RefusedCallError("a call with side effects is made once only")

    async def _begin_with(self, arguments: dict[str, Any]) -> None:
        try:
            await self._begin(replace(self._context, arguments=arguments))
        except BaseException as error:
            self.failed_begin = error
            raise

    async def _close(self, error: Exception | None = None) -> StepOutcome | None:
        """Let nothing go on; return what the tool gave if that counts, not the chain's end.

        Args:
            error: What ended the chain.
        """
        self._closed = True
        if self._beginning is not None and not self._beginning.done():
            await asyncio.wait({self._beginning})
        last = self._calls[-1] if self._calls else None
        left_behind = self._once and last is not None and not last.done()
        if last is None or not (left_behind or isinstance(error, CallStoppedError)):
            await self._cancel()
            return None
        await asyncio.wait({last})
        if last.cancelled() or (last in self._given_up and last.exception() is not None):
            return None
        return last.result()

    async def _cancel(self) -> None:
        tasks = [*self._calls, *([self._beginning] if self._beginning else [])]
        running = [task for task in tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)


def _look_at(task: "asyncio.Task[Any]") -> None:
    """See the exception of a task that nobody may be left to wait for."""
    if not task.cancelled():
        task.exception()
