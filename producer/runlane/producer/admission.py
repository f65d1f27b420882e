"""Check what a caller gives before anything is sent: a bad value is refused, nothing is stored."""

import re
from typing import Final

from runlane.journal.errors import InvalidInputError
from runlane.journal.ids import check_id, check_run_id
from runlane.journal.transfer.names import run_id_of
from runlane.journal.wire.jobs import FollowUpFailurePolicy

LOST_PREFIX: Final = "lost-"
"""Branches of such a name hold what a server lost: only workers make them."""

IDEMPOTENCY_KEY_LENGTH_MAX: Final = 256
REASON_LENGTH_MAX: Final = 1000
STEERING_LENGTH_MAX: Final = 16_384

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_CURSOR: Final = re.compile(r"([1-9][0-9]{0,14})-[0-9]{1,19}\.[0-9a-f]{24}")


def check_text(what: str, value: object, *, length_max: int | None = None) -> str:
    """Return `value` if it is text that says something and can be stored.

    Args:
        what: What it is, for the error.
        value: What the caller gave.
        length_max: At most this many characters; None if another limit holds.

    Raises:
        InvalidInputError: It is no str, is blank or too long, or holds a lone surrogate.
    """
    if not isinstance(value, str):
        raise InvalidInputError(f"{what} is of type {type(value).__name__}, not str")
    if not value.strip():
        raise InvalidInputError(f"{what} is empty")
    if length_max is not None and len(value) > length_max:
        raise InvalidInputError(f"{what} has {len(value)} characters, more than {length_max}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"{what} holds a lone surrogate at character {error.start}: it is no valid Unicode text"
        ) from error
    return value


def check_name(what: str, value: object) -> str:
    """Return `value` if it may name a session, branch, agent or version.

    Raises:
        InvalidInputError: It is not 1 to 128 characters of `A-Z a-z 0-9 . _ : -`.
    """
    return check_id(what, check_text(what, value))


def check_run(value: object) -> str:
    """Return `value` in its canonical form if it is a run id.

    Raises:
        InvalidInputError: It is not.
    """
    return check_run_id(check_text("the run id", value))


def check_any_run(value: object) -> str:
    """Return `value` in its canonical form if it is a run id, one that was imported included.

    Raises:
        InvalidInputError: It is not 1 to 128 characters of `A-Z a-z 0-9 . _ : -`.
    """
    return run_id_of(check_name("the run id", value))


def check_new_branch(value: object) -> str | None:
    """Return `value` if it may be the name of a branch that is to be made, or None.

    Raises:
        InvalidInputError: It is no name, or begins with `lost-`.
    """
    if value is None:
        return None
    name = check_name("branch", value)
    if name.startswith(LOST_PREFIX):
        raise InvalidInputError(
            f"the branch name {name!r} begins with {LOST_PREFIX}, as those do that hold what a "
            "server lost; choose another one"
        )
    return name


def check_idempotency_key(value: object) -> str | None:
    """Return `value` if it is an idempotency key or None.

    Raises:
        InvalidInputError: It is not 1 to 256 characters of valid text.
    """
    if value is None:
        return None
    return check_text("the idempotency key", value, length_max=IDEMPOTENCY_KEY_LENGTH_MAX)


def check_reason(value: object) -> str:
    """Return `value` if it is a reason to abort.

    Raises:
        InvalidInputError: It is not 1 to 1000 characters of valid text.
    """
    return check_text("the reason", value, length_max=REASON_LENGTH_MAX)


def check_steering(value: object) -> str:
    """Return `value`, without white space around it, if it may be said to a run.

    Raises:
        InvalidInputError: It is not 1 to 16384 characters of valid text.
    """
    content = check_text("the steering", value).strip()
    return check_text("the steering", content, length_max=STEERING_LENGTH_MAX)


def check_cursor(value: object) -> str | None:
    """Return `value` if it is the cursor of a committed event, or None.

    Raises:
        InvalidInputError: It is no cursor. Whether the journal has it is not looked at.
    """
    if value is None:
        return None
    cursor = check_text("the cursor", value)
    if not _CURSOR.fullmatch(cursor):
        raise InvalidInputError(
            f"the cursor {cursor[:140]!r} is not of the form <revision>-<number>.<hash>; "
            "use the `cursor` of a committed event"
        )
    return cursor


def check_record(value: object) -> str | None:
    """Return `value` if it is a record id, or None.

    Raises:
        InvalidInputError: It is none. Whether the journal has it is not looked at.
    """
    if value is None:
        return None
    record_id = check_text("the record id", value)
    if not _CURSOR.fullmatch(record_id):
        raise InvalidInputError(
            f"the record id {record_id[:140]!r} is not of the form <revision>-<number>.<hash>"
        )
    return record_id


def check_digest(value: object) -> str:
    """Return `value` if it is the digest of a blob.

    Raises:
        InvalidInputError: It is not the SHA-256 of something in lower-case hexadecimal digits.
    """
    digest = check_text("the digest", value)
    if not _DIGEST.fullmatch(digest):
        raise InvalidInputError(f"the digest {digest[:140]!r} is not 64 hexadecimal digits")
    return digest


def check_timeout(value: float | None) -> float | None:
    """Return `value` if it is a number of seconds or None.

    Raises:
        InvalidInputError: It is negative or not a number.
    """
    if value is not None and not value >= 0:
        raise InvalidInputError(f"the timeout {value!r} is not a number of seconds from 0 on")
    return value


def revision_of(cursor: str) -> int:
    """Return the revision of the record that a checked cursor names."""
    return int(cursor.partition("-")[0])


def check_failure_policy(value: object) -> FollowUpFailurePolicy:
    """Return `value` as the policy that it names.

    Raises:
        InvalidInputError: It names none.
    """
    try:
        return FollowUpFailurePolicy(check_text("the failure policy", value))
    except ValueError as error:
        known = ", ".join(FollowUpFailurePolicy)
        raise InvalidInputError(f"the failure policy {value!r} is none of: {known}") from error
