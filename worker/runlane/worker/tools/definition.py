"""What a model is told about a tool."""

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, Self, cast

import msgspec
from msgspec import Struct

from runlane.journal.errors import InvalidInputError
from runlane.worker.models.protocol import ToolSchema
from runlane.worker.tools.effects import ToolEffect

NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ToolDefinition(Struct, frozen=True):
    """A tool as the model and the loop know it.

    Attributes:
        name: 1 to 64 characters of `A-Za-z0-9_-`.
        description: What the tool is for, for the model to read.
        parameters: JSON Schema of the arguments: a read-only copy, in which nothing can change.
        effect: What a second call would do; decides whether it may run again after a crash.
        strict: Whether the provider shall force arguments to fit the schema; None says nothing.

    Raises:
        InvalidInputError: The name, the effect or the parameters break a rule above.
    """

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None
    effect: ToolEffect = ToolEffect.SIDE_EFFECTING
    strict: bool | None = None

    def __post_init__(self) -> None:
        if not NAME_PATTERN.fullmatch(self.name):
            raise InvalidInputError(
                f"tool name {self.name!r}: use 1 to 64 characters of A-Z, a-z, 0-9, _ and -"
            )
        if self.effect not in list(ToolEffect):
            raise InvalidInputError(
                f"tool {self.name!r}: unknown effect {self.effect!r}; use one of "
                f"{', '.join(ToolEffect)}"
            )
        msgspec.structs.force_setattr(self, "effect", ToolEffect(self.effect))
        if self.parameters is not None:
            parameters = frozen(_detach(self.name, self.parameters))
            msgspec.structs.force_setattr(self, "parameters", parameters)

    @classmethod
    def from_openai_tool(cls, tool: Mapping[str, Any]) -> Self:
        """Read `{"type": "function", "function": {"name", "description", …}}`.

        The effect is not part of that format: it is side-effecting until `with_effect` says else.

        Raises:
            InvalidInputError: It has another shape, or breaks a rule of `ToolDefinition`.
        """
        try:
            function = msgspec.convert(tool, _OpenAITool).function
        except msgspec.ValidationError as error:
            raise InvalidInputError(f"not an OpenAI function tool: {error}") from error
        return cls(
            name=function.name,
            description=function.description,
            parameters=function.parameters,
            strict=function.strict,
        )

    def with_effect(self, effect: ToolEffect) -> Self:
        """Return the same definition with another effect."""
        return msgspec.structs.replace(self, effect=effect)

    def to_openai_tool(self) -> dict[str, Any]:
        """Return the OpenAI dictionary; what is None is left out. The caller owns it."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self._plain_parameters(),
            "strict": self.strict,
        }
        return {
            "type": "function",
            "function": {key: value for key, value in function.items() if value is not None},
        }

    @property
    def schema(self) -> ToolSchema:
        """What a model adapter needs of it; without parameters it takes an empty object."""
        return ToolSchema(
            name=self.name,
            description=self.description,
            parameters=self._plain_parameters() or {"type": "object", "properties": {}},
            strict=self.strict,
        )

    def _plain_parameters(self) -> dict[str, Any] | None:
        return None if self.parameters is None else _detach(self.name, self.parameters)


class _OpenAIFunction(Struct):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class _OpenAITool(Struct):
    type: Literal["function"]
    function: _OpenAIFunction


def _detach(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(parameters, ensure_ascii=False, allow_nan=False, default=_plain)
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"tool {name!r}: parameters are not a JSON object: {error}"
        ) from error


def _plain(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    raise TypeError(f"{type(value).__name__} is not a JSON type")


def frozen(value: Any) -> Any:
    """Return a copy of JSON data in which nothing can be changed."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return MappingProxyType({key: frozen(member) for key, member in members.items()})
    if isinstance(value, list):
        return tuple(map(frozen, cast("Sequence[Any]", value)))
    return value
