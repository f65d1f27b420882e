"""Arguments checked against the JSON Schema that the model was told."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from runlane.journal.errors import InvalidInputError
from runlane.worker.tools.context import ToolCallContext
from runlane.worker.tools.definition import ToolDefinition
from runlane.worker.tools.effects import StepOutcome
from runlane.worker.tools.middleware.protocol import ToolMiddleware, ToolNext
from runlane.worker.tools.middleware.schema_effort import Effort, TooMuchEffortError
from runlane.worker.tools.middleware.schema_messages import ANY_BREACH, MESSAGES, UNCHECKABLE
from runlane.worker.tools.texts import cut, storable
from runlane.worker.tools.validation import ArgumentError, UnfitError

PATH_BYTES_MAX: Final = 1024
"""Of a path in a payload: it names properties, and those may be the model's own."""


class ToolSchemaConfigurationError(InvalidInputError):
    """The parameters of a tool are no JSON Schema that arguments can be checked against.

    Attributes:
        tool_name: The tool.
    """

    def __init__(self, tool_name: str, why: str) -> None:
        self.tool_name = tool_name
        super().__init__(f"tool {tool_name!r} contains an invalid parameters schema: {why}")


class ToolSchemaValidationMiddleware(ToolMiddleware):
    """Refuses arguments that break the tool's JSON Schema, with an error that the model can act on.

    The draft is that of `$schema`, 2020-12 by default. References lead to places in the schema
    itself: nothing is fetched. `format` is not checked. A tool without parameters takes anything.

    Args:
        max_errors: How many breaches the model is told, of those that are found first.

    Raises:
        InvalidInputError: `max_errors` is no whole number over 0.
    """

    immediate = True

    def __init__(self, max_errors: int = 8) -> None:
        if type(max_errors) is not int or max_errors < 1:
            raise InvalidInputError(f"max_errors must be an integer over 0, not {max_errors!r}")
        self._max_errors = max_errors
        self._effort = Effort()
        self._compiled: dict[int, tuple[ToolDefinition, Validator]] = {}
        """By identity: agents that share the middleware may have different tools of one name."""

    def configure_tools(self, definitions: Sequence[ToolDefinition]) -> None:
        """Read the schema of every tool.

        Raises:
            ToolSchemaConfigurationError: One is not valid.
        """
        for each in definitions:
            if each.parameters is not None:
                self._compiled[id(each)] = (each, self._compile(each))

    async def __call__(self, context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        """Go on with the call if its arguments fit.

        Raises:
            UnfitError: They do not.
            ToolSchemaConfigurationError: The schema refers to what is not part of it.
        """
        definition = context.tool_definition
        if definition.parameters is not None:
            known = self._compiled.get(id(definition))
            self._check(known[1] if known else self._compile(definition), context)
        return await call_next(context)

    def _check(self, validator: Validator, context: ToolCallContext) -> None:
        self._effort.renew()
        try:
            breaches = validator.iter_errors(context.arguments)
            found = list(islice(breaches, self._max_errors + 1))
        except Unresolvable as error:
            why = "a reference in it leads to nothing that is part of it"
            raise ToolSchemaConfigurationError(context.tool_definition.name, why) from error
        except (TooMuchEffortError, RecursionError, OverflowError, ValueError) as error:
            raise UnfitError((ArgumentError("", "schema", UNCHECKABLE),)) from error
        if found:
            told = sorted(found[: self._max_errors], key=_place)
            errors = tuple(map(_argument_error, told))
            raise UnfitError(errors, truncated=len(found) > self._max_errors)

    def _compile(self, definition: ToolDefinition) -> Validator:
        schema = definition.schema.parameters
        if not isinstance(schema.get("$schema", ""), str):
            raise ToolSchemaConfigurationError(definition.name, "its $schema is no text")
        try:
            kind = validator_for(schema, default=Draft202012Validator)
            kind.check_schema(schema)
        except SchemaError as error:
            raise ToolSchemaConfigurationError(definition.name, error.message) from error
        except RecursionError as error:
            raise ToolSchemaConfigurationError(definition.name, "it is too deep") from error
        schema.pop("$schema", None)  # where a reference leads to it, the limit would be lost
        return self._effort.limited(kind)(schema, registry=Registry())


def _place(breach: ValidationError) -> tuple[tuple[str, ...], str]:
    return tuple(map(str, breach.absolute_path)), _keyword(breach)


def _keyword(breach: ValidationError) -> str:
    return str(breach.validator or "schema")


def _argument_error(breach: ValidationError) -> ArgumentError:
    keyword = _keyword(breach)
    path = [*breach.absolute_path, *_missing(breach)]
    return ArgumentError(_pointer(path), keyword, MESSAGES.get(keyword, ANY_BREACH))


def _missing(breach: ValidationError) -> Iterable[str]:
    """Return the property that is required and not there; jsonschema names it in the text only."""
    if breach.validator != "required" or not isinstance(breach.validator_value, list):
        return ()
    required = cast("list[str]", breach.validator_value)
    return (name for name in required if breach.message == f"{name!r} is a required property")


def _pointer(path: Iterable[str | int]) -> str:
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return cut(storable("".join(f"/{step}" for step in steps)), PATH_BYTES_MAX)
