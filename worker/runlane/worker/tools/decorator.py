"""A typed function as a tool."""

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, overload

from runlane.journal.errors import InvalidInputError
from runlane.worker.tools.context import ToolCallContext
from runlane.worker.tools.definition import ToolDefinition
from runlane.worker.tools.docstrings import read_docstring
from runlane.worker.tools.effects import StepOutcome, ToolEffect
from runlane.worker.tools.signature import read_signature
from runlane.worker.tools.threads import run_in_thread
from runlane.worker.tools.validation import ArgumentError

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class FunctionTool(Generic[P, R]):
    """A function that a model may call, and that code may still call as the function it is.

    Attributes:
        definition: What the model is told, read from the signature and the docstring.
        timeout_s: Seconds after which a call is stopped; None for no limit.

    Raises:
        InvalidInputError: The name, the signature or the timeout cannot be used, or the function is
            a generator.
    """

    __name__: str

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        effect: ToolEffect = ToolEffect.SIDE_EFFECTING,
        timeout_s: float | None = None,
        strict: bool | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        name = name or self.__name__
        _refuse_generator(f"tool {name!r}", function)
        if timeout_s is not None and not 0 < timeout_s < math.inf:
            raise InvalidInputError(f"tool {name!r}: timeout_s must be over 0, not {timeout_s!r}")
        documented = read_docstring(function.__doc__)
        self._function = function
        self._arguments = read_signature(name, function, documented.arguments)
        self._reconciler: Callable[..., Any] | None = None
        self.timeout_s = timeout_s
        self.definition = ToolDefinition(
            name=name,
            description=documented.description,
            parameters=self._arguments.schema,
            effect=effect,
            strict=strict,
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, as if it were no tool."""
        return self._function(*args, **kwargs)

    def reconcile(self, function: F) -> F:
        """Register what to ask, after a crash, about a call whose result was lost.

        The function, async or not, takes the `ToolCallContext` first and the arguments of the tool
        by name. It returns what the call gave, or None if it cannot tell. It must be safe against a
        late start of the lost call.

        Raises:
            InvalidInputError: It does not take the arguments of the tool, or is a generator.
        """
        _refuse_generator(f"tool {self.definition.name!r}: reconcile", function)
        names = self._arguments.shape.__struct_fields__
        try:
            inspect.signature(function).bind(None, **dict.fromkeys(names))
        except TypeError as error:
            raise InvalidInputError(
                f"tool {self.definition.name!r}: reconcile must take the context and then "
                f"{', '.join(names) or 'nothing'}: {error}"
            ) from error
        self._reconciler = function
        return function

    def argument_errors(self, arguments: Mapping[str, Any]) -> tuple[ArgumentError, ...]:
        """Return what is wrong with the arguments of a call."""
        return self._arguments.errors(arguments)

    async def invoke(
        self, arguments: Mapping[str, Any], *, context: ToolCallContext
    ) -> StepOutcome:
        """Call the function with arguments from a model.

        Raises:
            msgspec.ValidationError: The arguments do not fit.
            Exception: Whatever the function raises.
        """
        typed = self._arguments.convert(arguments)
        given = self._arguments.given_by(context)
        return _outcome(await _call(self._function, **typed, **given))

    async def ask_reconciler(
        self, arguments: Mapping[str, Any], *, context: ToolCallContext
    ) -> StepOutcome | None:
        """Return what a call with a lost result gave; None if nobody can tell.

        Raises:
            msgspec.ValidationError: The arguments do not fit.
            Exception: Whatever the registered function raises.
        """
        if self._reconciler is None:
            return None
        found = await _call(self._reconciler, context, **self._arguments.convert(arguments))
        return None if found is None else _outcome(found)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    effect: ToolEffect = ToolEffect.SIDE_EFFECTING,
    timeout_s: float | None = None,
    strict: bool | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a typed function, async or not; one that is not runs in a thread.

    The schema comes from the type hints, the description from the first paragraph of the docstring,
    those of the arguments from its `Args:` section. A parameter annotated `ToolCallContext`,
    `ToolProgressReporter` or `CancellationToken` is passed that of the call, and is not part of the
    schema.

    Args:
        function: For use without parentheses.
        **options: `name` (default: the function's), `effect` (default: side-effecting), `timeout_s`
            (seconds; default: no limit of its own) and `strict` (whether the provider shall force
            arguments to fit the schema; default: not said).

    Raises:
        InvalidInputError: The name, the signature or the timeout cannot be used, or the function is
            a generator.
    """
    if function is not None:
        return FunctionTool(function)
    return functools.partial(FunctionTool, **options)


def _refuse_generator(what: str, function: Callable[..., Any]) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInputError(f"{what} is a generator; it must return its result, not yield it")


def _outcome(value: Any) -> StepOutcome:
    return value if isinstance(value, StepOutcome) else StepOutcome(value)


async def _call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    result = await run_in_thread(functools.partial(function, *args, **kwargs))
    return await result if inspect.isawaitable(result) else result
