"""Messages that an application wants a model to read, checked before they get there."""

from collections.abc import Sequence
from typing import Final, cast, get_args

import msgspec

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.messages import ContextMessage
from runlane.worker.tools.texts import json_text, storable

KINDS: Final[frozenset[type]] = frozenset(get_args(ContextMessage))


def sound(given: object, known: Sequence[ContextMessage]) -> tuple[ContextMessage, ...]:
    """Return messages as any journal and any provider can take them.

    Args:
        given: What an application made.
        known: What it made them of: those of them that it passes on need no check.

    Raises:
        InvalidInputError: Something in it is no message, or has a field of another type.
    """
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InvalidInputError(f"{type(given).__name__} is no sequence of messages")
    made = cast("Sequence[object]", given)
    checked = set(map(id, known))
    return tuple(
        cast("ContextMessage", each) if id(each) in checked else _sound(each) for each in made
    )


def _sound(message: object) -> ContextMessage:
    if type(message) not in KINDS:
        raise InvalidInputError(f"{type(message).__name__} is no message")
    try:
        return msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=ContextMessage)
    except UnicodeEncodeError:
        text = storable(json_text(msgspec.to_builtins(message)))
        return msgspec.json.decode(text, type=ContextMessage)
    except (msgspec.MsgspecError, TypeError) as error:
        name = type(message).__name__
        raise InvalidInputError(f"a {name} cannot be used: {error}") from error
