"""The tools of an agent: which there are, what a call may do, and how it is run."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.messages import ModelToolCall
from runlane.worker.tools.context import ToolCallContext
from runlane.worker.tools.definition import ToolDefinition
from runlane.worker.tools.effects import StepOutcome, ToolControl
from runlane.worker.tools.execution import run_bounded
from runlane.worker.tools.failures import failure_of, log_failure
from runlane.worker.tools.handlers import BaseHandler, refuse_duplicates
from runlane.worker.tools.middleware.chain import Begin, Chain
from runlane.worker.tools.middleware.protocol import ToolMiddleware
from runlane.worker.tools.middleware.time_limit import time_limit
from runlane.worker.tools.prepared import (
    PreparedCall,
    ToolFailure,
    checked,
    final_arguments,
    parse_arguments,
)
from runlane.worker.tools.results import ToolResult
from runlane.worker.tools.texts import builtins

RESULT_BYTES_MAX: Final = 1024 * 1024
CANCEL_GRACE_S: Final = 5.0
MIDDLEWARE_TIMEOUT_S: Final = 600.0

T = TypeVar("T")


class ToolRuntime:
    """Runs the tool calls of any number of runs of one agent.

    Args:
        handlers: Started in this order, stopped in the reverse one.
        middlewares: What each call goes through, outermost first; started after the handlers, if
            there is any tool.
        timeout_s: Seconds that a call may take whose tool does not say so itself; None for no
            limit.
        middleware_timeout_s: Seconds that the middlewares of a call may take, all together, before
            the tool is called, and again once it has ended; None for no limit.
        result_bytes_max: Longest result in UTF-8 bytes; what is over is cut off, with a marker.
        cancel_grace_s: Seconds to wait for a call that was asked to stop, before it is abandoned.
    """

    def __init__(
        self,
        handlers: Iterable[BaseHandler],
        middlewares: Sequence[ToolMiddleware] = (),
        *,
        timeout_s: float | None = None,
        middleware_timeout_s: float | None = MIDDLEWARE_TIMEOUT_S,
        result_bytes_max: int = RESULT_BYTES_MAX,
        cancel_grace_s: float = CANCEL_GRACE_S,
    ) -> None:
        self._handlers = tuple(handlers)
        self._middlewares = tuple(middlewares)
        self._timeout_s = timeout_s
        self._middleware_timeout_s = middleware_timeout_s
        self._result_bytes_max = result_bytes_max
        self._cancel_grace_s = cancel_grace_s
        self._routes: dict[str, tuple[ToolDefinition, BaseHandler]] = {}
        self._started = AsyncExitStack()

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Every tool, in the order of the handlers; none before `startup`."""
        return tuple(definition for definition, _ in self._routes.values())

    @property
    def immediate(self) -> bool:
        """Whether a call begins without waiting for any middleware."""
        return all(middleware.immediate for middleware in self._middlewares)

    async def startup(self) -> None:
        """Start handlers, then middlewares; if one fails, stop those that had started, last first.

        Raises:
            InvalidInputError: Two tools have one name.
            Exception: Whatever a handler or a middleware raises.
        """
        async with AsyncExitStack() as starting:
            for handler in self._handlers:
                await handler.startup()
                starting.push_async_callback(handler.shutdown)
            offers = [(each, owner) for owner in self._handlers for each in owner.tool_definitions]
            refuse_duplicates(definition for definition, _ in offers)
            for middleware in self._middlewares if offers else ():
                middleware.configure_tools([definition for definition, _ in offers])
            for middleware in self._middlewares if offers else ():
                await middleware.startup()
                starting.push_async_callback(middleware.shutdown)
            self._routes = {definition.name: (definition, owner) for definition, owner in offers}
            self._started = starting.pop_all()

    async def shutdown(self) -> None:
        """Stop every handler, last first, even if one raises.

        Raises:
            Exception: What a handler raised.
        """
        self._routes = {}
        await self._started.aclose()

    def prepare(self, call: ModelToolCall) -> PreparedCall | ToolFailure:
        """Decide whether a call may run, by all that can be known without running anything."""
        if call.name not in self._routes:
            known = ", ".join(self._routes) or "none"
            failed = ToolResult.failed(call.name, f"unknown tool; there are: {known}")
            return ToolFailure(call, failed)
        definition, handler = self._routes[call.name]
        try:
            arguments = parse_arguments(call.arguments)
        except InvalidInputError as error:
            return ToolFailure(call, ToolResult.failed(call.name, str(error)), definition.effect)
        timeout_s = handler.timeout_s(call.name) or self._timeout_s
        return checked(PreparedCall(call, definition, handler, arguments, timeout_s))

    def with_arguments(
        self, prepared: PreparedCall, arguments: Mapping[str, Any]
    ) -> PreparedCall | ToolFailure:
        """Return a call with other arguments, if they fit the tool."""
        return checked(replace(prepared, arguments=dict(arguments)))

    async def execute(
        self,
        prepared: PreparedCall,
        context: ToolCallContext,
        *,
        begin: Begin,
        begun: bool = False,
        remaining_s: float | None = None,
    ) -> ToolResult:
        """Run a call. Whatever middlewares and the tool do, there is a result.

        A call that ignores being stopped is abandoned after the grace period; whether it happened
        is then unknown if it has side effects.

        Args:
            prepared: The call.
            context: What it is given.
            begin: Called right before the tool is, with its final arguments: the place to journal
                that the call begins.
            begun: Whether that is journaled already, with the arguments of `prepared`: middlewares
                cannot change them any more.
            remaining_s: Seconds after which it is stopped in any case, its middlewares included;
                None for no limit.

        Raises:
            BaseException: Whatever `begin` raises.
        """
        try:
            if self._middlewares:
                with time_limit(context.cancellation, remaining_s) as cancellation:
                    own = replace(context, cancellation=cancellation)
                    return await self._through_chain(prepared, own, begin, begun=begun)
            limits = [each for each in (prepared.timeout_s, remaining_s) if each is not None]
            bounded = replace(prepared, timeout_s=min(limits, default=None))
            await begin(context)
            try:
                return self._completed(bounded, await self._dispatched(bounded, context))
            except Exception as error:
                return failure_of(bounded, error)
        finally:
            context.progress.settle()

    async def reconcile(
        self, prepared: PreparedCall, context: ToolCallContext
    ) -> ToolResult | None:
        """Return the result of a call that a crash has lost; None if it cannot be told.

        No middleware is asked: the call has passed them. A handler that fails, or is stopped,
        could not tell.
        """
        name = prepared.definition.name
        try:
            step = await self._bounded(prepared, context, prepared.handler.reconcile)
        except Exception as error:
            log_failure(name, "could not be reconciled", error)
            return None
        finally:
            context.progress.settle()
        if step is None:
            return None
        return ToolResult.completed(name, step, self._result_bytes_max)

    async def _through_chain(
        self, prepared: PreparedCall, context: ToolCallContext, begin: Begin, *, begun: bool
    ) -> ToolResult:
        def check(arguments: dict[str, Any]) -> dict[str, Any]:
            return prepared.arguments if begun else final_arguments(prepared, arguments)

        chain = Chain(
            self._middlewares,
            context,
            check=check,
            begin=begin,
            dispatch=partial(self._dispatched, prepared),
            timeout_s=self._middleware_timeout_s,
        )
        try:
            step = await chain.outcome(self._cancel_grace_s)
        except Exception as error:
            if chain.failed_begin is not None:
                raise chain.failed_begin from None
            return failure_of(prepared, chain.lost or error, called=chain.called, made=chain.made)
        if chain.failed_begin is not None:
            raise chain.failed_begin
        if chain.lost is not None:
            return failure_of(prepared, chain.lost)
        result = self._completed(prepared, step)
        refused = step.control is ToolControl.REJECT and not chain.called
        return result.marked_failed() if refused else result

    def _completed(self, prepared: PreparedCall, step: StepOutcome) -> ToolResult:
        return ToolResult.completed(prepared.definition.name, step, self._result_bytes_max)

    async def _dispatched(self, prepared: PreparedCall, context: ToolCallContext) -> StepOutcome:
        return await self._bounded(prepared, context, prepared.handler.dispatch)

    async def _bounded(
        self, prepared: PreparedCall, context: ToolCallContext, method: Callable[..., Awaitable[T]]
    ) -> T:
        arguments = builtins(context.arguments)  # what a handler does to them stays with it
        own = replace(context, arguments=arguments)
        return await run_bounded(
            lambda: method(prepared.definition.name, arguments, context=own),
            cancellation=context.cancellation,
            timeout_s=prepared.timeout_s,
            grace_s=self._cancel_grace_s,
        )
