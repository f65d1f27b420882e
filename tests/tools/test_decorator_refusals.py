import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from msgspec import Struct

from runlane.journal.errors import InvalidInputError
from runlane.worker.tools import tool


class Named(Struct):
    name: str


def no_annotation(a: int) -> None:
    """Do."""


del no_annotation.__annotations__["a"]


def positional_only(a: int, /) -> None:
    """Do."""


def many(*a: int) -> None:
    """Do."""


def named(**a: int) -> None:
    """Do."""


def unresolved(a: int) -> None:
    """Do."""


unresolved.__annotations__["a"] = "Nowhere"


def not_json(a: threading.Thread) -> None:
    """Do."""


def piecemeal() -> Iterator[str]:
    """Do."""
    yield "a"


async def piecemeal_async() -> AsyncIterator[str]:
    """Do."""
    yield "a"


def not_one_type(b: int, a: int | dict[str, int] | Named) -> None:
    """Do."""


def endless(a: float = float("inf")) -> None:
    """Do."""


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (no_annotation, "parameter 'a' has no annotation"),
        (positional_only, "parameter 'a' cannot be given by name"),
        (many, "parameter 'a' cannot be given by name"),
        (named, "parameter 'a' cannot be given by name"),
        (unresolved, "cannot be resolved"),
        (not_json, "tool 'not_json': parameter 'a': type .*Thread'> is not supported"),
        (not_one_type, "parameter 'a': Type unions may not contain more than one dict-like"),
        (endless, "not a JSON object"),
        (piecemeal, "tool 'piecemeal' is a generator; it must return its result"),
        (piecemeal_async, "tool 'piecemeal_async' is a generator"),
        (lambda: None, "tool name '<lambda>'"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused(
    function: Callable[..., Any], text: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"(?s){text}"):
        tool(function)


@pytest.mark.parametrize("timeout_s", [0, -1, float("inf"), float("nan")])
def test_a_timeout_that_is_none_is_refused(timeout_s: float) -> None:
    with pytest.raises(InvalidInputError, match="timeout_s must be over 0"):
        tool(timeout_s=timeout_s)(not_a_problem)


def not_a_problem() -> None:
    """Do."""
