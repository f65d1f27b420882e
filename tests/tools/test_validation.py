import uuid
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from runlane.worker.tools import tool

SECRET = "hunter2"


class Leaf(Struct):
    size: Annotated[int, Meta(ge=1, le=9, multiple_of=2)]


class Circle(Struct, tag=True):
    radius: Annotated[float, Meta(gt=0, lt=10)]


class Square(Struct, tag=True):
    side: float


class Odd(Struct):
    value: int

    def __post_init__(self) -> None:
        if self.value == 0:
            raise KeyError(SECRET)
        if self.value < 0:
            raise ValueError(f"{SECRET} is negative")


class Slashed(Struct, rename={"inner": "a/b~c"}):
    inner: int


@tool
def check(
    *,
    number: int = 0,
    text: Annotated[str, Meta(min_length=2, max_length=3, pattern="^a")] = "ab",
    leaves: Annotated[list[Leaf], Meta(min_length=1, max_length=2)] | None = None,
    by_id: dict[int, Leaf] | None = None,
    limited: Annotated[dict[str, int], Meta(min_length=1, max_length=1)] | None = None,
    pair: tuple[int, str] | None = None,
    shape: Circle | Square | None = None,
    word: Literal["x", "y"] = "x",
    day: date | None = None,
    moment: Annotated[datetime, Meta(tz=True)] | None = None,
    key: uuid.UUID | None = None,
    raw: bytes | None = None,
    price: Decimal | None = None,
    odd: Odd | None = None,
    slashed: Slashed | None = None,
) -> None:
    """Check everything."""


@pytest.mark.parametrize(
    ("arguments", "path", "keyword"),
    [
        ({"number": SECRET}, "/number", "type"),
        ({"number": None}, "/number", "type"),
        ({SECRET: 1}, "", "additionalProperties"),
        ({"text": "a"}, "/text", "minLength"),
        ({"text": "a" + SECRET}, "/text", "maxLength"),
        ({"text": "zz"}, "/text", "pattern"),
        ({"leaves": []}, "/leaves", "minItems"),
        ({"leaves": [{"size": 2}] * 3}, "/leaves", "maxItems"),
        ({"leaves": [{"size": 2}, {}]}, "/leaves/1/size", "required"),
        ({"leaves": [{"size": 0}]}, "/leaves/0/size", "minimum"),
        ({"leaves": [{"size": 10}]}, "/leaves/0/size", "maximum"),
        ({"leaves": [{"size": 3}]}, "/leaves/0/size", "multipleOf"),
        ({"by_id": {SECRET: {"size": 2}}}, "/by_id", "propertyNames"),
        ({"by_id": {"1": {"size": SECRET}}}, "/by_id/*/size", "type"),
        ({"limited": {}}, "/limited", "minProperties"),
        ({"limited": {"a": 1, SECRET: 2}}, "/limited", "maxProperties"),
        ({"pair": [1]}, "/pair", "minItems"),
        ({"shape": {"type": SECRET}}, "/shape/type", "enum"),
        ({"shape": {"type": "Circle", "radius": 0}}, "/shape/radius", "exclusiveMinimum"),
        ({"shape": {"type": "Circle", "radius": 10}}, "/shape/radius", "exclusiveMaximum"),
        ({"word": SECRET}, "/word", "enum"),
        ({"word": f"{SECRET}' - at `$.{SECRET}`"}, "/word", "enum"),
        ({"day": SECRET}, "/day", "format"),
        ({"moment": "2026-01-01T00:00:00"}, "/moment", "format"),
        ({"key": SECRET}, "/key", "format"),
        ({"raw": "%" + SECRET}, "/raw", "format"),
        ({"price": SECRET}, "/price", "format"),
        ({"odd": {"value": -1}}, "/odd", "schema"),
        ({"odd": {"value": 0}}, "", "schema"),
        ({"slashed": {"a/b~c": SECRET}}, "/slashed/a~1b~0c", "type"),
    ],
)
def test_a_breach_is_named_without_the_value(
    arguments: dict[str, Any], path: str, keyword: str
) -> None:
    (error,) = check.argument_errors(arguments)
    assert (error.path, error.keyword) == (path, keyword)
    assert error.message
    assert SECRET not in repr(error)
