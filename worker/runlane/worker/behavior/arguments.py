"""Arguments of a tool call, detached from those that it is made with."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from runlane.journal.errors import InvalidInputError
from runlane.worker.tools.texts import builtins, json_text, storable


def plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of JSON's own types, which any journal can store.

    Raises:
        InvalidInputError: They cannot be written as a JSON object.
    """
    detached: dict[str, Any] = json.loads(_text(arguments))
    return detached


def read_only(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy of JSON's own types, whose objects cannot be changed.

    Raises:
        InvalidInputError: They cannot be written as a JSON object.
    """
    detached: Mapping[str, Any] = json.loads(_text(arguments), object_hook=MappingProxyType)
    return detached


def _text(arguments: Mapping[str, Any]) -> str:
    try:
        return storable(json_text(arguments, default=_builtins))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"the arguments are not a JSON object: {error}") from error


def _builtins(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    return builtins(value)
