"""Text that a journal can keep, made from whatever a tool or a model gives."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any, Final

import msgspec

DESCRIPTION_BYTES_MAX: Final = 4000
"""Of what an exception says; with the marker of a cut it still fits into a tool result's error."""
_CONTINUES: Final = 0b10
"""The first two bits of a UTF-8 byte that goes on with a character."""


def builtins(value: Any) -> Any:
    """Return a value of another type in JSON's types; what has none becomes text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # A default may stand on the class alone, where msgspec does not look.
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return msgspec.to_builtins(value, enc_hook=str)


def json_text(data: Any, *, default: Callable[[Any], Any] = builtins) -> str:
    """Write `data` as JSON; what is not JSON becomes text, NaN and infinities become null.

    Args:
        data: Anything.
        default: Makes JSON's types of a value of another one.

    Raises:
        TypeError, ValueError, RecursionError: It cannot be written: a key is not text, it
            contains itself, or it is too deep.
    """
    text = json.dumps(data, ensure_ascii=False, default=default)
    if "NaN" in text or "Infinity" in text:
        finite = json.loads(text, parse_constant=lambda _: None)
        text = json.dumps(finite, ensure_ascii=False)
    return text


def storable(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 can hold, by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def cut(text: str, bytes_max: int, *, note: str = "") -> str:
    """Return storable `text`, or its first `bytes_max` bytes and how much is missing.

    The cut falls between two characters; the marker comes on top of the limit, and `note` ends it.
    """
    encoded = text.encode()
    if len(encoded) <= bytes_max:
        return text
    kept = first_bytes(encoded, bytes_max)
    missing = len(encoded) - len(kept)
    return f"{kept.decode()}\n[cut: {missing} of {len(encoded)} bytes are missing{note}]"


def first_bytes(encoded: bytes, bytes_max: int) -> bytes:
    """Return at most the first `bytes_max` bytes of UTF-8 text, and no part of a character."""
    if len(encoded) <= bytes_max:
        return encoded
    end = bytes_max
    while encoded[end] >> 6 == _CONTINUES:
        end -= 1
    return encoded[:end]


def said(error: BaseException) -> str:
    """Return the text of an exception; empty if it has none, or cannot give it."""
    try:
        return str(error)
    except BaseException:  # any code may run here
        return ""


def describe(error: BaseException, *, typed: bool = False) -> str:
    """Return storable, bounded text of an exception: what it says, or else its type.

    Args:
        error: Whatever was raised; this never raises because of it.
        typed: Whether to name the type in front of what it says, too.
    """
    name = type(error).__name__
    text = said(error)
    if not text:
        return name
    return cut(storable(f"{name}: {text}" if typed else text), DESCRIPTION_BYTES_MAX)
