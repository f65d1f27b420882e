import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from functools import wraps
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta, Struct
from tests.tools.support import context_of_call

from runlane.worker.control import CancellationToken
from runlane.worker.tools import (
    StepOutcome,
    ToolCallContext,
    ToolControl,
    ToolEffect,
    ToolProgressReporter,
    ToolProgressUpdate,
    tool,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Item(Struct, frozen=True):
    sku: str
    amount: Annotated[int, Meta(ge=1)] = 1


class Tree(Struct, frozen=True):
    children: "tuple[Tree, ...]" = ()


@tool
async def order(
    items: list[Item],
    when: date,
    colour: Colour = Colour.RED,
    notes: list[str] | None = None,
    tags: tuple[str, ...] = ("new",),
    *,
    ctx: ToolCallContext,
) -> dict[str, Any]:
    """Order items
    from the shop.

    Args:
        items: What to order.
        when: The day of delivery.
        ctx: Not for the model.
    """
    return {
        "items": items,
        "when": when,
        "colour": colour,
        "notes": notes,
        "tags": tags,
        "key": ctx.operation_key,
    }


def test_the_schema_comes_from_the_signature() -> None:
    assert order.definition.name == "order"
    assert order.definition.effect is ToolEffect.SIDE_EFFECTING
    assert order.definition.description == "Order items from the shop."
    assert order.definition.schema.parameters == {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": {"$ref": "#/$defs/Item"},
                "description": "What to order.",
            },
            "when": {"type": "string", "format": "date", "description": "The day of delivery."},
            "colour": {"$ref": "#/$defs/Colour", "default": "red"},
            "notes": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "default": None,
            },
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["items", "when"],
        "additionalProperties": False,
        "$defs": {
            "Colour": {"title": "Colour", "enum": ["blue", "red"]},
            "Item": {
                "title": "Item",
                "type": "object",
                "properties": {
                    "sku": {"type": "string"},
                    "amount": {"type": "integer", "minimum": 1, "default": 1},
                },
                "required": ["sku"],
            },
        },
    }


async def test_the_function_gets_real_types_its_own_defaults_and_the_context() -> None:
    arguments = {"items": [{"sku": "a"}], "when": "2026-01-02"}
    outcome = await order.invoke(arguments, context=context_of_call())
    assert outcome == StepOutcome(
        {
            "items": [Item("a", 1)],
            "when": date(2026, 1, 2),
            "colour": Colour.RED,
            "notes": None,
            "tags": ("new",),
            "key": "run:2:0",
        }
    )


@tool
def echo(items: list[Item], day: date, tree: Tree, counts: dict[int, float]) -> Any:
    return items, day, tree, counts


ITEMS = st.builds(Item, sku=st.text(alphabet=list("ab")), amount=st.integers(1, 9))
TREES = st.recursive(
    st.just(Tree()), lambda inner: st.builds(Tree, st.lists(inner, max_size=2).map(tuple))
)


@given(
    items=st.lists(ITEMS, max_size=3),
    day=st.dates(),
    tree=TREES,
    counts=st.dictionaries(st.integers(-9, 9), st.floats(-1, 1), max_size=3),
)
@settings(deadline=None, max_examples=50)
async def test_arguments_written_as_json_come_back_as_they_were(
    items: list[Item], day: date, tree: Tree, counts: dict[int, float]
) -> None:
    text = msgspec.json.encode({"items": items, "day": day, "tree": tree, "counts": counts})
    arguments = msgspec.json.decode(text)
    assert echo.argument_errors(arguments) == ()
    outcome = await echo.invoke(arguments, context=context_of_call())
    assert outcome.data == (items, day, tree, counts)


def test_the_tool_is_still_the_function() -> None:
    @tool(effect=ToolEffect.READ_ONLY, name="sum-up", timeout_s=2)
    def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    total: int = add(2, b=3)
    assert total == 5
    assert add.definition.name == "sum-up"
    assert add.definition.effect is ToolEffect.READ_ONLY
    assert add.timeout_s == 2
    assert (add.__name__, add.__doc__) == ("add", "Add.")


def test_a_tool_without_arguments_takes_an_empty_object() -> None:
    @tool
    def ping() -> str:
        return "pong"

    assert ping.definition.schema.parameters == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert ping.definition.description is None


async def test_a_sync_function_runs_in_a_thread() -> None:
    @tool
    def where() -> int:
        return threading.get_ident()

    outcome = await where.invoke({}, context=context_of_call())
    assert outcome.data != threading.get_ident()


async def test_an_async_function_behind_a_plain_decorator_is_awaited() -> None:
    def plain(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @tool
    @plain
    async def look(a: int) -> int:
        return a

    assert (await look.invoke({"a": 1}, context=context_of_call())).data == 1


async def test_a_step_outcome_is_kept() -> None:
    done = StepOutcome("bye", ToolControl.COMPLETE)

    @tool
    async def finish() -> StepOutcome:
        return done

    assert await finish.invoke({}, context=context_of_call()) is done


@dataclass
class Address:
    """Where somebody lives."""

    town: str
    lines: list[str] = field(default_factory=list[str])


class Window(TypedDict, total=False):
    first: int
    last: int


@tool
async def search(
    query: Annotated[str, Meta(min_length=1, description="What to look for.")],
    near: Address | None,
    kind: Literal["book", "film"] = "book",
    window: Window | None = None,
    limit: Annotated[int, Meta(ge=1, le=100)] | None = 10,
) -> Any:
    """Search.

    Args:
        query: Not this, since the annotation says it already.
        kind (str, optional): One of a few.
        limit: How many,
            at most.
    """
    return query, near, kind, window, limit


def test_every_usual_type_has_its_schema() -> None:
    parameters = search.definition.schema.parameters
    nothing = {"type": "null"}
    assert parameters["required"] == ["query", "near"]
    assert parameters["properties"] == {
        "query": {"type": "string", "minLength": 1, "description": "What to look for."},
        "near": {"anyOf": [{"$ref": "#/$defs/Address"}, nothing]},
        "kind": {"enum": ["book", "film"], "default": "book", "description": "One of a few."},
        "window": {"anyOf": [{"$ref": "#/$defs/Window"}, nothing], "default": None},
        "limit": {
            "anyOf": [{"type": "integer", "minimum": 1, "maximum": 100}, nothing],
            "default": 10,
            "description": "How many, at most.",
        },
    }
    address, window = (parameters["$defs"][name] for name in ("Address", "Window"))
    assert address["properties"]["town"] == {"type": "string"}
    assert (address["description"], address["required"]) == ("Where somebody lives.", ["town"])
    assert window["properties"] == {"first": {"type": "integer"}, "last": {"type": "integer"}}
    assert window["required"] == []


async def test_every_usual_type_is_made_of_what_the_model_gives() -> None:
    arguments = {"query": "a", "near": {"town": "Ulm"}, "kind": "film", "window": {"last": 2}}
    assert search.argument_errors(arguments) == ()
    outcome = await search.invoke(arguments, context=context_of_call())
    assert outcome.data == ("a", Address("Ulm"), "film", {"last": 2}, 10)
    found = await search.invoke({"query": "a", "near": None}, context=context_of_call())
    assert found.data == ("a", None, "book", None, 10)


@pytest.mark.parametrize(
    ("argument", "place", "keyword"),
    [
        ({"query": ""}, "/query", "minLength"),
        ({"near": {"town": 1}}, "/near/town", "type"),
        ({"near": {}}, "/near/town", "required"),
        ({"kind": "song"}, "/kind", "enum"),
        ({"window": {"first": "a"}}, "/window/first", "type"),
        ({"limit": 0}, "/limit", "minimum"),
        ({"else": 1}, "", "additionalProperties"),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(
    argument: dict[str, Any], place: str, keyword: str
) -> None:
    (error,) = search.argument_errors({"query": "a", "near": None, **argument})
    assert (error.path, error.keyword) == (place, keyword)


async def test_what_belongs_to_the_call_is_passed_and_not_asked_of_the_model() -> None:
    @tool
    async def look(
        at: str,
        context: ToolCallContext,
        progress: ToolProgressReporter,
        cancellation: CancellationToken | None = None,
    ) -> str:
        """Look.

        Args:
            at: What to look at.
            progress: Not for the model.
        """
        assert (progress, cancellation) == (context.progress, context.cancellation)
        await progress.report(f"looking at {at}")
        return context.operation_key

    assert [*look.definition.schema.parameters["properties"]] == ["at"]
    heard: list[ToolProgressUpdate] = []
    outcome = await look.invoke({"at": "stars"}, context=context_of_call(heard=heard))
    assert (outcome.data, heard) == ("run:2:0", [ToolProgressUpdate("looking at stars")])
    (refused,) = look.argument_errors({"at": "stars", "progress": None})
    assert refused.keyword == "additionalProperties"


@pytest.mark.parametrize("strict", [True, False])
def test_strictness_is_said_to_the_provider_if_it_is_chosen(strict: bool) -> None:
    def look(at: str) -> str:
        return at

    assert "strict" not in tool(look).definition.to_openai_tool()["function"]
    chosen = tool(strict=strict)(look).definition
    assert chosen.to_openai_tool()["function"]["strict"] is strict
    assert chosen.schema.strict is strict
