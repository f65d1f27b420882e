"""The tools of an agent: which there are, what a call may do, and how it is run."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.messages import ModelToolCall
from runlane.worker.tools.context import ToolContext
from runlane.worker.tools.definition import ToolDefinition
from runlane.worker.tools.effects import ToolEffect
from runlane.worker.tools.execution import CallStoppedError, run_bounded
from runlane.worker.tools.handlers import BaseHandler, refuse_duplicates
from runlane.worker.tools.results import ToolResult
from runlane.worker.tools.texts import describe

RESULT_BYTES_MAX: Final = 1024 * 1024
CANCEL_GRACE_S: Final = 5.0

T = TypeVar("T")
logger = logging.getLogger(__name__)


class PreparedCall(Struct, frozen=True):
    """A call that may be run.

    Attributes:
        call: As the model wrote it.
        definition: The tool.
        handler: Who answers.
        arguments: Parsed; they fit the tool.
        timeout_s: Seconds after which it is stopped; None for no limit.
    """

    call: ModelToolCall
    definition: ToolDefinition
    handler: BaseHandler
    arguments: dict[str, Any]
    timeout_s: float | None

    @property
    def effect(self) -> ToolEffect:
        """What a second call would do."""
        return self.definition.effect


class ToolFailure(Struct, frozen=True):
    """A call that must not be run, with the result that the model reads instead.

    Attributes:
        call: As the model wrote it.
        result: An error.
        effect: That of the tool; side-effecting for an unknown one.
    """

    call: ModelToolCall
    result: ToolResult
    effect: ToolEffect = ToolEffect.SIDE_EFFECTING


class ToolRuntime:
    """Runs the tool calls of any number of runs of one agent.

    Args:
        handlers: Started in this order, stopped in the reverse one.
        result_bytes_max: Longest result in UTF-8 bytes; what is over is cut off, with a marker.
        cancel_grace_s: Seconds to wait for a call that was asked to stop, before it is abandoned.
    """

    def __init__(
        self,
        handlers: Iterable[BaseHandler],
        *,
        result_bytes_max: int = RESULT_BYTES_MAX,
        cancel_grace_s: float = CANCEL_GRACE_S,
    ) -> None:
        self._handlers = tuple(handlers)
        self._result_bytes_max = result_bytes_max
        self._cancel_grace_s = cancel_grace_s
        self._routes: dict[str, tuple[ToolDefinition, BaseHandler]] = {}
        self._started = AsyncExitStack()

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Every tool, in the order of the handlers; none before `startup`."""
        return tuple(definition for definition, _ in self._routes.values())

    async def startup(self) -> None:
        """Start every handler; if one fails, stop those that had started, last first.

        Raises:
            InvalidInputError: Two tools have one name.
            Exception: Whatever a handler raises.
        """
        async with AsyncExitStack() as starting:
            for handler in self._handlers:
                await handler.startup()
                starting.push_async_callback(handler.shutdown)
            offers = [(each, owner) for owner in self._handlers for each in owner.tool_definitions]
            refuse_duplicates(definition for definition, _ in offers)
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
            arguments = _parse(call.arguments)
        except InvalidInputError as error:
            return ToolFailure(call, ToolResult.failed(call.name, str(error)), definition.effect)
        if errors := handler.argument_errors(call.name, arguments):
            return ToolFailure(call, ToolResult.invalid(call.name, errors), definition.effect)
        return PreparedCall(call, definition, handler, arguments, handler.timeout_s(call.name))

    async def execute(self, prepared: PreparedCall, context: ToolContext) -> ToolResult:
        """Run a call. Whatever the tool does, there is a result.

        A call that ignores being stopped is abandoned after the grace period; whether it happened
        is then unknown if it has side effects.
        """
        name = prepared.definition.name
        try:
            step = await self._bounded(prepared, context, prepared.handler.dispatch)
            return ToolResult.completed(name, step, self._result_bytes_max)
        except CallStoppedError as stop:
            return _stopped(prepared, stop)
        except Exception as error:
            logger.warning("tool %s failed", name, exc_info=error)
            return ToolResult.failed(name, describe(error))
        finally:
            context.progress.settle()

    async def reconcile(self, prepared: PreparedCall, context: ToolContext) -> ToolResult | None:
        """Return the result of a call that a crash has lost; None if it cannot be told.

        A handler that fails, or is stopped, could not tell.
        """
        name = prepared.definition.name
        try:
            step = await self._bounded(prepared, context, prepared.handler.reconcile)
        except Exception as error:
            logger.warning("tool %s could not be reconciled", name, exc_info=error)
            return None
        finally:
            context.progress.settle()
        if step is None:
            return None
        return ToolResult.completed(name, step, self._result_bytes_max)

    async def _bounded(
        self, prepared: PreparedCall, context: ToolContext, method: Callable[..., Awaitable[T]]
    ) -> T:
        return await run_bounded(
            lambda: method(prepared.definition.name, prepared.arguments, context=context),
            cancellation=context.cancellation,
            timeout_s=prepared.timeout_s,
            grace_s=self._cancel_grace_s,
        )


def _stopped(prepared: PreparedCall, stop: CallStoppedError) -> ToolResult:
    name = prepared.definition.name
    if stop.abandoned:
        logger.warning("tool %s ignores that it was stopped (%s)", name, stop.reason)
        if prepared.effect is ToolEffect.SIDE_EFFECTING:
            return ToolResult.unknown(name)
    if stop.cancelled:
        return ToolResult.cancelled(name, stop.reason)
    return ToolResult.failed(name, f"{stop.reason}; the call was stopped, perhaps half done")


def _parse(arguments: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(arguments.strip() or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"the arguments are not a JSON object: {error}") from error
