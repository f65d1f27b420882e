"""Names of things: what a valid id is, and how new ones are made."""

import os
import re
import time
import uuid
from typing import Final

from runlane.journal.errors import InvalidInputError

_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_PREFIX: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")

MAIN_BRANCH: Final = "main"


def check_id(what: str, value: str) -> str:
    """Return `value` if it may name a session, branch, agent or version.

    Raises:
        InvalidInputError: It is not 1 to 128 characters of `A-Z a-z 0-9 . _ : -`.
    """
    if not _ID.fullmatch(value):
        raise InvalidInputError(
            f"{what} {value[:140]!r} is not 1 to 128 characters of A-Z a-z 0-9 . _ : -"
        )
    return value


def check_prefix(value: str) -> str:
    """Return `value` if it may be the prefix of every key.

    Raises:
        InvalidInputError: It is not 1 to 64 characters of `A-Z a-z 0-9 . _ -`.
    """
    if not _PREFIX.fullmatch(value):
        raise InvalidInputError(
            f"prefix {value[:70]!r} (RUNLANE_PREFIX) is not 1 to 64 of A-Z a-z 0-9 . _ -"
        )
    return value


def check_run_id(value: str) -> str:
    """Return `value` in its canonical form if it is a UUID.

    Raises:
        InvalidInputError: It is not.
    """
    try:
        return str(uuid.UUID(value))
    except (ValueError, AttributeError) as error:
        raise InvalidInputError(f"run id {value!r} is not a UUID") from error


def new_run_id() -> str:
    """Return a new UUIDv7 (RFC 9562, 5.7): sortable by time to the millisecond."""
    now_ms = time.time_ns() // 1_000_000
    value = now_ms << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def new_request_id() -> str:
    """Return a new id for one transition: sent again with the same id, it happens once."""
    return os.urandom(12).hex()
