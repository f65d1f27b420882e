"""What is wrong with the arguments of a call, said without repeating any of their values."""

import re
from typing import Final

from msgspec import Struct

from runlane.journal.errors import RunlaneError
from runlane.worker.tools.texts import said


class ArgumentError(Struct, frozen=True):
    """One breach of a tool's schema.

    Attributes:
        path: JSON Pointer to the argument; empty for the whole object, `*` for an unnamed entry.
        keyword: The JSON Schema keyword that is broken, or `schema` for a rule of the type's own.
        message: What was expected, for the model to read.
    """

    path: str
    keyword: str
    message: str


class UnfitError(RunlaneError):
    """The arguments of a call do not fit its tool.

    Attributes:
        errors: What is wrong with them.
        truncated: Whether more is.
    """

    def __init__(self, errors: tuple[ArgumentError, ...], *, truncated: bool = False) -> None:
        self.errors = errors
        self.truncated = truncated
        super().__init__("the arguments do not fit the tool")


LOCATED: Final = re.compile(
    r"(?P<breach>.*) - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`", re.DOTALL
)
STEP: Final = re.compile(r"\.(?P<field>[^.\[\]]+)|\[(?P<index>\d+|\.\.\.)\]")
MISSING: Final = re.compile(r"Object missing required field `(?P<field>[^`]+)`")

WITH_FIXED_MESSAGE: Final = (
    (re.compile(r"Object contains unknown field .*"), "additionalProperties", "not a parameter"),
    (re.compile(r"Invalid (?:enum )?value .*", re.DOTALL), "enum", "not an allowed value"),
)
WITH_OWN_MESSAGE: Final = tuple(
    (re.compile(breach), keyword)
    for breach, keyword in (
        (r"Expected `[^`]*`, got `[^`]*`", "type"),
        (r"Expected `(?:str|bytes)` of length >=.*", "minLength"),
        (r"Expected `(?:str|bytes)` of length <=.*", "maxLength"),
        (r"Expected `array` of length <=.*", "maxItems"),
        (r"Expected `array` of .*length.*", "minItems"),
        (r"Expected `object` of length >=.*", "minProperties"),
        (r"Expected `object` of length <=.*", "maxProperties"),
        (r"Expected `str` matching regex .*", "pattern"),
        (r"Expected `\w+` that's a multiple of .*", "multipleOf"),
        (r"Expected `\w+` >= .*", "minimum"),
        (r"Expected `\w+` <= .*", "maximum"),
        (r"Expected `\w+` > .*", "exclusiveMinimum"),
        (r"Expected `\w+` < .*", "exclusiveMaximum"),
        (r"Expected `\w+` with (?:a|no) timezone component", "format"),
        (r"Invalid (?:RFC3339|ISO8601|UUID|base64|decimal).*", "format"),
    )
)


def argument_error(error: Exception) -> ArgumentError:
    """Say what msgspec, or a type's own rule, found; their texts may quote the value, ours not."""
    text = said(error)
    located = LOCATED.fullmatch(text)
    breach = located["breach"] if located else text
    path = _pointer(located["path"]) if located else ""
    if missing := MISSING.fullmatch(breach):
        return ArgumentError(f"{path}/{_escape(missing['field'])}", "required", "missing")
    for pattern, keyword, message in WITH_FIXED_MESSAGE:
        if pattern.fullmatch(breach):
            return ArgumentError(path, keyword, message)
    for pattern, keyword in WITH_OWN_MESSAGE:
        if pattern.fullmatch(breach):
            of_key = located is not None and located["key"] is not None
            return ArgumentError(path, "propertyNames" if of_key else keyword, breach)
    return ArgumentError(path, "schema", "not valid for its type")


def _pointer(path: str) -> str:
    return "".join(
        f"/{_escape(step['field'] or step['index'].replace('...', '*'))}"
        for step in STEP.finditer(path)
    )


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
