"""The arguments of a typed function, as a JSON Schema and as a type to validate against."""

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from runlane.journal.errors import InvalidInputError
from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.tools.context import ToolCallContext, ToolProgressReporter
from runlane.worker.tools.validation import ArgumentError, argument_error

REFERENCE: Final = "#/$defs/{name}"

OFFERED: Final[Mapping[Any, Callable[[ToolCallContext], Any]]] = MappingProxyType(
    {
        ToolCallContext: lambda context: context,
        ToolProgressReporter: lambda context: context.progress,
        CancellationToken: lambda context: context.cancellation,
    }
)
"""What a parameter of one of these types is passed. The model does not hear of it."""


class FunctionArguments(Struct, frozen=True):
    """What a function takes.

    Attributes:
        schema: JSON Schema of the arguments that the model gives.
        shape: The same as a type.
        defaults: The function's own defaults of those arguments.
        offered: The parameters that the model does not give, and what of a call they take.
    """

    schema: dict[str, Any]
    shape: type[Struct]
    defaults: dict[str, Any]
    offered: dict[str, Callable[[ToolCallContext], Any]]

    def errors(self, arguments: Mapping[str, Any]) -> tuple[ArgumentError, ...]:
        """Return what is wrong with the arguments; msgspec stops at the first breach."""
        try:
            self.convert(arguments)
        except Exception as error:  # a type of the function's own may raise anything
            return (argument_error(error),)
        return ()

    def convert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return every argument as the type that the function asks for, defaults included.

        Raises:
            msgspec.ValidationError: They do not fit; the text may quote a value.
        """
        typed = msgspec.convert(arguments, self.shape, str_keys=True)
        return {**self.defaults, **{name: getattr(typed, name) for name in arguments}}

    def given_by(self, context: ToolCallContext) -> dict[str, Any]:
        """Return the arguments that the model does not give."""
        return {name: part(context) for name, part in self.offered.items()}


def read_signature(
    tool: str, function: Callable[..., Any], descriptions: Mapping[str, str]
) -> FunctionArguments:
    """Read the parameters of a function.

    Args:
        tool: The tool's name, for error texts.
        function: Has an annotation on every parameter, each to be given by name.
        descriptions: What to tell the model about an argument.

    Raises:
        InvalidInputError: A parameter cannot be given by name, has no annotation, or has one that
            cannot be resolved or expressed in JSON Schema.
    """
    hints = _resolved_hints(tool, function)
    offered: dict[str, Callable[[ToolCallContext], Any]] = {}
    defaults: dict[str, Any] = {}
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise InvalidInputError(
                f"tool {tool!r}: parameter {name!r} cannot be given by name; "
                "a tool takes no *args, no **kwargs and nothing before a /"
            )
        if name not in hints:
            raise InvalidInputError(f"tool {tool!r}: parameter {name!r} has no annotation")
        if part := _offered(hints[name]):
            offered[name] = part
        elif parameter.default is parameter.empty:
            fields.append((name, hints[name]))
        else:
            defaults[name] = parameter.default
            fields.append((name, hints[name], _shown_default(parameter.default)))
    shape, schema = _shape_and_schema(tool, fields)
    for name, text in descriptions.items():
        if name in schema["properties"]:
            schema["properties"][name].setdefault("description", text)
    return FunctionArguments(schema, shape, defaults, offered)


def _resolved_hints(tool: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidInputError(
            f"tool {tool!r}: an annotation cannot be resolved ({error}); "
            "its types must be importable at run time, at module level"
        ) from error


def _offered(hint: Any) -> Callable[[ToolCallContext], Any] | None:
    members = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    wanted = [each for each in members if each is not NoneType]
    return OFFERED.get(wanted[0]) if len(wanted) == 1 and isinstance(wanted[0], type) else None


def _shown_default(default: Any) -> Any:
    """Scalars are shown in the schema; of anything else it only says that it is optional."""
    scalar = default is None or isinstance(default, str | int | float | Enum)
    return default if scalar else msgspec.UNSET


def _shape_and_schema(
    tool: str, fields: list[tuple[str, Any] | tuple[str, Any, Any]]
) -> tuple[type[Struct], dict[str, Any]]:
    try:
        shape = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        (root,), components = msgspec.json.schema_components([shape], ref_template=REFERENCE)
    except TypeError as error:
        why = str(error).splitlines()[-1]
        raise InvalidInputError(f"tool {tool!r}: {_culprit(fields)}{why}") from error
    schema = components.pop(root["$ref"].removeprefix(REFERENCE.format(name="")))
    del schema["title"]
    return shape, {**schema, "$defs": components} if components else schema


def _culprit(fields: list[tuple[str, Any] | tuple[str, Any, Any]]) -> str:
    for name, hint, *_ in fields:
        try:
            msgspec.json.schema(hint)
        except TypeError:
            return f"parameter {name!r}: "
    return ""
