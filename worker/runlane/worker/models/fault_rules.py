"""How the answer of an unwilling provider is read: which kind of fault, and when to return."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, cast

from runlane.worker.models.faults import ModelErrorKind, ModelProviderError

_SHORT_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")

_AUTHENTICATION_CODES: Final = frozenset(
    {"authentication_error", "invalid_api_key", "permission_error"}
)
_RATE_LIMIT_CODES: Final = frozenset({"rate_limit_error", "rate_limit_exceeded"})
_OVERFLOW_CODES: Final = frozenset(
    {
        "context_length_error",
        "context_length_exceeded",
        "context_window_exceeded",
        "exceed_context_size_error",
        "input_too_long",
        "prompt_too_long",
    }
)
_OVERFLOW_PHRASES: Final = (
    "context length",
    "context size",
    "context window",
    "contextwindowexceeded",
    "exceeded model token limit",
    "exceeds the maximum number of tokens",
    "input is too long",
    "maximum model length",
    "maximum prompt length",
    "prompt exceeds max length",
    "prompt is too long",
    "range of input length",
    "reduce the length of the messages",
)


def fault_of_answer(
    where: str,
    error: object,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> ModelProviderError:
    """Return the fault that a provider's error object stands for.

    Args:
        where: The model and its address, for the message.
        error: The error as the provider sent it: an object with code, type and message, or text.
        status: HTTP status of the answer; None takes the one that `error` names as its code.
        headers: Headers of the answer.
    """
    text = str(error).lower()
    fields = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
    names = [str(fields[key]) for key in ("code", "type") if fields.get(key) is not None]
    status = status or next(
        (int(name) for name in names if re.fullmatch("[45][0-9]{2}", name)), None
    )
    codes = [name for name in names if _SHORT_NAME.fullmatch(name)]
    kind = _kind(status, {code.lower() for code in codes}, text)
    told = ", ".join([*([f"HTTP {status}"] if status else []), *codes[:1]]) or "an error"
    return ModelProviderError(
        f"{where} answered with {told} ({kind})",
        kind=kind,
        status=status,
        code=codes[0] if codes else None,
        retry_after_s=_retry_after_s(headers or {}),
    )


def _kind(status: int | None, codes: set[str], text: str) -> ModelErrorKind:
    if status in (401, 403) or codes & _AUTHENTICATION_CODES:
        return ModelErrorKind.AUTHENTICATION
    if status == 429 or codes & _RATE_LIMIT_CODES:  # noqa: PLR2004 (an HTTP status)
        return ModelErrorKind.RATE_LIMIT
    if status in (408, 504):
        return ModelErrorKind.TIMEOUT
    if codes & _OVERFLOW_CODES or any(phrase in text for phrase in _OVERFLOW_PHRASES):
        return ModelErrorKind.CONTEXT_OVERFLOW
    return ModelErrorKind.PROVIDER_ERROR


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the wait that `Retry-After` asks for; None without one, or with one of no sense."""
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    return seconds if (seconds := _number(text)) is not None else _seconds_until(text)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", text.strip()) else None


def _seconds_until(http_date: str) -> float | None:
    try:
        date = parsedate_to_datetime(http_date)
    except ValueError:
        return None
    aware = date.replace(tzinfo=date.tzinfo or UTC)  # "-0000" is parsed as no zone at all
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())
