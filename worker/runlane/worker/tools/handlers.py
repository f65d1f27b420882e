"""Who answers a tool call."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from runlane.journal.errors import InvalidInputError
from runlane.worker.tools.context import ToolContext
from runlane.worker.tools.decorator import FunctionTool
from runlane.worker.tools.definition import ToolDefinition
from runlane.worker.tools.effects import StepOutcome
from runlane.worker.tools.validation import ArgumentError


class BaseHandler(ABC):
    """A group of tools with a common life, such as a connection that they share."""

    @property
    @abstractmethod
    def tool_definitions(self) -> Sequence[ToolDefinition]:
        """The tools that it answers; read once, after `startup`."""

    async def startup(self) -> None:  # noqa: B027  most handlers have nothing to start
        """Get ready; called once, before any call."""

    async def shutdown(self) -> None:  # noqa: B027  nor to stop
        """Let go of what `startup` took; called once, after every call."""

    def timeout_s(self, name: str) -> float | None:
        """Return the seconds after which a call of the tool is stopped; None for no limit."""
        return None

    def argument_errors(
        self,
        name: str,
        arguments: dict[str, Any],
    ) -> tuple[ArgumentError, ...]:
        """Return what is wrong with the arguments of a call; asked before its intent is kept."""
        return ()

    @abstractmethod
    async def dispatch(
        self, name: str, arguments: dict[str, Any], *, context: ToolContext
    ) -> StepOutcome:
        """Do the call. What it raises becomes an error result that the model reads."""

    async def reconcile(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        context: ToolContext,
    ) -> StepOutcome | None:
        """Return what a call gave whose result was lost in a crash; None if that cannot be told.

        It must be safe against a late start of the lost call.
        """
        return None


class MethodToolHandler(BaseHandler):
    """Answers the tool `name` with its own method `async do_<name>(arguments, …) -> StepOutcome`.

    Of the keyword arguments `cancellation`, `progress` and `context`, a method is passed those that
    it accepts.

    Attributes:
        tools: Definitions or OpenAI dictionaries, for handlers that are not given any.

    Raises:
        InvalidInputError: Two tools have one name, or one has no such method.
    """

    tools: ClassVar[Sequence[ToolDefinition | Mapping[str, Any]]] = ()

    def __init__(self, tools: Iterable[ToolDefinition | Mapping[str, Any]] | None = None) -> None:
        self._definitions = tuple(
            tool if isinstance(tool, ToolDefinition) else ToolDefinition.from_openai_tool(tool)
            for tool in (self.tools if tools is None else tools)
        )
        refuse_duplicates(self._definitions)
        self._methods = {each.name: self._method(each.name) for each in self._definitions}

    @property
    def tool_definitions(self) -> Sequence[ToolDefinition]:
        """The tools that it was given."""
        return self._definitions

    async def dispatch(
        self, name: str, arguments: dict[str, Any], *, context: ToolContext
    ) -> StepOutcome:
        """Call `do_<name>`.

        Raises:
            TypeError: It returned something else than a `StepOutcome`.
            Exception: Whatever the method raises.
        """
        method = self._methods[name]
        offered = {
            "cancellation": context.cancellation,
            "progress": context.progress,
            "context": context,
        }
        outcome = await method(arguments, **_accepted(method, offered))
        if not isinstance(outcome, StepOutcome):
            raise TypeError(f"do_{name} returned {type(outcome).__name__} instead of a StepOutcome")
        return outcome

    def _method(self, name: str) -> Callable[..., Awaitable[object]]:
        method: Callable[..., Awaitable[object]] | None = getattr(self, f"do_{name}", None)
        if method is None or not inspect.iscoroutinefunction(method):
            raise InvalidInputError(
                f"tool {name!r}: {type(self).__name__} has no method `async def do_{name}`"
            )
        return method


class FunctionToolHandler(BaseHandler):
    """Answers with functions that `@tool` made into tools.

    Raises:
        InvalidInputError: Two tools have one name.
    """

    def __init__(self, tools: Iterable[FunctionTool[..., Any]]) -> None:
        functions = tuple(tools)
        self._definitions = tuple(each.definition for each in functions)
        refuse_duplicates(self._definitions)
        self._tools = {each.definition.name: each for each in functions}

    @property
    def tool_definitions(self) -> Sequence[ToolDefinition]:
        """The definitions of the functions."""
        return self._definitions

    def timeout_s(self, name: str) -> float | None:
        """Return the function's own timeout."""
        return self._tools[name].timeout_s

    def argument_errors(self, name: str, arguments: dict[str, Any]) -> tuple[ArgumentError, ...]:
        """Check the arguments against the function's type hints."""
        return self._tools[name].argument_errors(arguments)

    async def dispatch(
        self, name: str, arguments: dict[str, Any], *, context: ToolContext
    ) -> StepOutcome:
        """Call the function."""
        return await self._tools[name].invoke(arguments, context=context)

    async def reconcile(
        self, name: str, arguments: dict[str, Any], *, context: ToolContext
    ) -> StepOutcome | None:
        """Ask the function's reconciler, if it has one."""
        return await self._tools[name].ask_reconciler(arguments, context=context)


def refuse_duplicates(definitions: Iterable[ToolDefinition]) -> None:
    """Check that every tool has a name of its own.

    Raises:
        InvalidInputError: Two have the same.
    """
    seen: set[str] = set()
    for each in definitions:
        if each.name in seen:
            raise InvalidInputError(f"two tools are named {each.name!r}")
        seen.add(each.name)


def _accepted(method: Callable[..., Any], offered: dict[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(method).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return offered
    return {name: value for name, value in offered.items() if name in parameters}
