"""How often in a row a model has asked for the same call. Pure."""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import msgspec

from runlane.journal.wire.messages import ModelToolCall
from runlane.journal.wire.tree import Repeated

__all__ = ["Repeated", "count_repeats", "signature_of"]


REMEMBERED_CHARS: Final = 1024
"""A response is looked at when it comes, and again when it is journaled."""


def count_repeats(before: Repeated, calls: Sequence[ModelToolCall]) -> tuple[list[int], Repeated]:
    """Return how many times in a row each call has come, itself included, and the last of them."""
    counts: list[int] = []
    last = before
    for call in calls:
        signature = signature_of(call)
        last = Repeated(signature, last.count + 1 if signature == last.signature else 1)
        counts.append(last.count)
    return counts, last


def signature_of(call: ModelToolCall) -> str:
    """Return a digest that two calls share if their names and arguments are the same.

    The order of keys and the space in JSON text do not matter; what is no JSON is compared as text.
    """
    short = len(call.arguments) <= REMEMBERED_CHARS
    return (_remembered if short else _digest)(call.name, call.arguments)


def _digest(name: str, text: str) -> str:
    try:
        arguments = msgspec.json.encode(_decoder.decode(text), order="sorted")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        arguments = text.encode()
    return blake2b(name.encode() + b"\0" + arguments, digest_size=12).hexdigest()


_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_remembered = lru_cache(maxsize=64)(_digest)
