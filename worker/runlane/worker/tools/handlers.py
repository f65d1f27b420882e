"""Who answers a tool call."""

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Self

from runlane.journal.errors import InvalidInputError
from runlane.worker.tools.context import ToolCallContext
from runlane.worker.tools.decorator import FunctionTool
from runlane.worker.tools.definition import ToolDefinition
from runlane.worker.tools.effects import StepOutcome, ToolEffect
from runlane.worker.tools.validation import ArgumentError

_OFFERED: Final = ("cancellation", "progress", "context")


def _accepted(function: Callable[..., Any]) -> frozenset[str]:
    """Return which of the keyword arguments that we offer a function takes."""
    parameters = inspect.signature(function).parameters
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    return frozenset(name for name in _OFFERED if takes_any or name in parameters)


def _parts(context: ToolCallContext, names: Iterable[str]) -> dict[str, Any]:
    return {name: context if name == "context" else getattr(context, name) for name in names}


def _passed_parts(dispatch: Callable[..., Awaitable[StepOutcome]]) -> Callable[..., Any]:
    wishes = _accepted(dispatch)

    @functools.wraps(dispatch)
    async def with_context(
        self: BaseHandler, name: str, arguments: dict[str, Any], *, context: ToolCallContext
    ) -> StepOutcome:
        return await dispatch(self, name, arguments, **_parts(context, wishes))

    return with_context


class BaseHandler(ABC):
    """A group of tools with a common life, such as a connection that they share.

    All runs of a worker share it. A `dispatch` that does not take the `context` is passed those of
    `cancellation` and `progress` that it takes.

    Attributes:
        tools: Definitions or OpenAI dictionaries, for a handler without other `tool_definitions`.

    Raises:
        InvalidInputError: It has an `on_task_start`, which nobody would call.
    """

    tools: ClassVar[Sequence[ToolDefinition | Mapping[str, Any]]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dispatch = vars(cls).get("dispatch")
        if dispatch is not None and "context" not in _accepted(dispatch):
            cls.dispatch = _passed_parts(dispatch)  # type: ignore[method-assign]

    def __new__(cls, *_args: Any, **_options: Any) -> Self:
        """Refuse what would never be called."""
        if hasattr(cls, "on_task_start"):
            raise InvalidInputError(
                f"{cls.__name__} has an on_task_start, which is never called: a handler is shared "
                "by runs that go on at the same time, and after a crash elsewhere. Keep what "
                "belongs to one run by the run_id of the call's context, outside the process"
            )
        return super().__new__(cls)

    @property
    def tool_definitions(self) -> Sequence[ToolDefinition]:
        """The tools that it answers; read once, after `startup`.

        Raises:
            InvalidInputError: There is none, or a dictionary is none of OpenAI's.
        """
        definitions = read_definitions(self.tools)
        if not definitions:
            raise InvalidInputError(
                f"{type(self).__name__} has no tools: list them as `tools`, or define "
                "`tool_definitions`"
            )
        return definitions

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
        self, name: str, arguments: dict[str, Any], *, context: ToolCallContext
    ) -> StepOutcome:
        """Do the call. What it raises becomes an error result that the model reads."""

    async def reconcile(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        context: ToolCallContext,
    ) -> StepOutcome | None:
        """Return what a call gave whose result was lost in a crash; None if that cannot be told.

        It must be safe against a late start of the lost call.
        """
        return None


class MethodToolHandler(BaseHandler):
    """Answers the tool `name` with its own method `async do_<name>(arguments, …) -> StepOutcome`.

    Of the keyword arguments `cancellation`, `progress` and `context`, a method is passed those that
    it accepts.

    Args:
        tools: Definitions or OpenAI dictionaries; None for those of the class.
        tool_effects: The effects of some of them, by name.

    Raises:
        InvalidInputError: Two tools have one name, or one has no such method, or an effect is that
            of no tool.
    """

    def __init__(
        self,
        tools: Iterable[ToolDefinition | Mapping[str, Any]] | None = None,
        *,
        tool_effects: Mapping[str, ToolEffect] | None = None,
    ) -> None:
        effects = tool_effects or {}
        self._definitions = tuple(
            each.with_effect(effects.get(each.name, each.effect))
            for each in read_definitions(self.tools if tools is None else tools)
        )
        refuse_duplicates(self._definitions)
        self._methods = {each.name: self._method(each.name) for each in self._definitions}
        self._wishes = {name: _accepted(method) for name, method in self._methods.items()}
        if unknown := effects.keys() - self._methods.keys():
            raise InvalidInputError(f"effects of no tool: {', '.join(sorted(unknown))}")

    @property
    def tool_definitions(self) -> Sequence[ToolDefinition]:
        """The tools that it was given."""
        return self._definitions

    async def dispatch(
        self, name: str, arguments: dict[str, Any], *, context: ToolCallContext
    ) -> StepOutcome:
        """Call `do_<name>`.

        Raises:
            TypeError: It returned something else than a `StepOutcome`.
            Exception: Whatever the method raises.
        """
        outcome = await self._methods[name](arguments, **_parts(context, self._wishes[name]))
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
        self, name: str, arguments: dict[str, Any], *, context: ToolCallContext
    ) -> StepOutcome:
        """Call the function."""
        return await self._tools[name].invoke(arguments, context=context)

    async def reconcile(
        self, name: str, arguments: dict[str, Any], *, context: ToolCallContext
    ) -> StepOutcome | None:
        """Ask the function's reconciler, if it has one."""
        return await self._tools[name].ask_reconciler(arguments, context=context)


def read_definitions(
    tools: Iterable[ToolDefinition | Mapping[str, Any]],
) -> tuple[ToolDefinition, ...]:
    """Return definitions as they are, and those that are OpenAI dictionaries read.

    Raises:
        InvalidInputError: A dictionary is none of OpenAI's.
    """
    return tuple(
        tool if isinstance(tool, ToolDefinition) else ToolDefinition.from_openai_tool(tool)
        for tool in tools
    )


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
