"""Text that a journal can keep, made from whatever a tool returns."""

import json
from functools import partial
from typing import Any, Final

import msgspec

BUILTINS: Final = partial(msgspec.to_builtins, enc_hook=str)


def json_text(data: Any) -> str:
    """Write `data` as JSON; what is not JSON becomes text, NaN and infinities become null.

    Raises:
        TypeError, ValueError, RecursionError: It cannot be written: a key is not text, it
            contains itself, or it is too deep.
    """
    text = json.dumps(data, ensure_ascii=False, default=BUILTINS)
    if "NaN" in text or "Infinity" in text:
        finite = json.loads(text, parse_constant=lambda _: None)
        text = json.dumps(finite, ensure_ascii=False)
    return text


def storable(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 can hold, by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def cut(text: str, bytes_max: int) -> str:
    """Return storable `text`, or its first `bytes_max` bytes and how much is missing.

    The cut falls between two characters; the marker comes on top of the limit.
    """
    encoded = text.encode()
    if len(encoded) <= bytes_max:
        return text
    kept = encoded[:bytes_max].decode(errors="ignore")
    missing = len(encoded) - len(kept.encode())
    return f"{kept}\n[cut: {missing} of {len(encoded)} bytes are missing]"
