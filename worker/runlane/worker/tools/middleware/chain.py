"""One call through all middlewares to its handler."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from msgspec.structs import replace

from runlane.journal.errors import RunlaneError
from runlane.worker.tools.context import ToolCallContext
from runlane.worker.tools.effects import StepOutcome, ToolEffect
from runlane.worker.tools.execution import CallStoppedError, run_bounded
from runlane.worker.tools.middleware.protocol import ToolMiddleware
from runlane.worker.tools.texts import BUILTINS

Begin: TypeAlias = Callable[[ToolCallContext], Awaitable[None]]
"""Called right before a tool is: what it raises ends the call."""


class RefusedCallError(RunlaneError):
    """A middleware asked for what must not happen; the text is for the model."""


class Chain:
    """One call on its way.

    A middleware is stopped with the run, or by its own timeout; what it swallows, or leaves
    behind, cannot begin a call, nor hide what became of one. So the intent and the tool have tasks
    of their own.

    Args:
        middlewares: Outermost first.
        context: The call.
        check: Returns the arguments that it is made with, of those that middlewares hand on.
        begin: Called once, before the handler is.
        dispatch: Calls the handler; it stops by itself with the run.

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
    ) -> None:
        self.failed_begin: BaseException | None = None
        self._middlewares = middlewares
        self._context = context
        self._once = context.tool_definition.effect is ToolEffect.SIDE_EFFECTING
        self._check = check
        self._begin = begin
        self._dispatch = dispatch
        self._beginning: asyncio.Task[None] | None = None
        self._calls: list[asyncio.Task[StepOutcome]] = []
        self._closed = False

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

    async def outcome(self, grace_s: float) -> StepOutcome:
        """Return what the outermost middleware makes of the call.

        If it was stopped, or did not wait for a call with side effects, it is what the tool gave.

        Args:
            grace_s: Seconds to wait for middlewares that were asked to stop.

        Raises:
            CallStoppedError: The run was stopped before there was a result.
            Exception: Whatever a middleware or the handler raises.
        """
        try:
            return await self._outcome(grace_s)
        except asyncio.CancelledError:  # the worker ends
            self._closed = True
            await self._cancel()
            raise

    async def _outcome(self, grace_s: float) -> StepOutcome:
        own = replace(self._context, arguments=BUILTINS(self._context.arguments))
        try:
            outcome = await run_bounded(
                lambda: self._from(0, own),
                cancellation=self._context.cancellation,
                timeout_s=None,
                grace_s=grace_s,
            )
        except Exception as error:
            given = await self._close(error)
            if given is None:
                raise
            return given
        return await self._close() or outcome

    async def _from(self, place: int, context: ToolCallContext) -> StepOutcome:
        if place == len(self._middlewares):
            return await self._call(context)
        middleware = self._middlewares[place]
        outcome = await middleware(context, partial(self._from, place + 1))
        if not isinstance(cast("object", outcome), StepOutcome):
            kind = type(outcome).__name__
            raise TypeError(f"{type(middleware).__name__} returned {kind}, not a StepOutcome")
        return outcome

    async def _call(self, context: ToolCallContext) -> StepOutcome:
        self._refuse_what_must_not_happen()
        cancellation = self._context.cancellation
        cancellation.raise_if_cancelled()
        arguments = self._check(context.arguments)
        final = replace(context, arguments=arguments, cancellation=cancellation)
        if self._beginning is None:
            self._beginning = asyncio.create_task(self._begin_with(final))
            self._beginning.add_done_callback(_look_at)
        await asyncio.shield(self._beginning)
        if self._closed:
            raise RefusedCallError("the call has ended")
        call = asyncio.ensure_future(self._dispatch(final))
        call.add_done_callback(_look_at)
        self._calls.append(call)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            if not cancellation.cancelled:
                call.cancel()
                await asyncio.wait({call})
            raise

    def _refuse_what_must_not_happen(self) -> None:
        if self._closed:
            raise RefusedCallError("the call has ended")
        if self._once and self._beginning is not None:
            raise RefusedCallError("a call with side effects is made once only")

    async def _begin_with(self, final: ToolCallContext) -> None:
        try:
            await self._begin(final)
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
        return None if last.cancelled() else last.result()

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
