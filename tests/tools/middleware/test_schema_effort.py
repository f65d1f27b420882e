import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator, Draft202012Validator
from jsonschema.protocols import Validator
from msgspec.structs import replace
from referencing import Registry
from tests.tools.support import JSON_VALUES, context_of_call

from runlane.worker.tools import (
    ArgumentError,
    StepOutcome,
    ToolCallContext,
    ToolDefinition,
    ToolSchemaValidationMiddleware,
)
from runlane.worker.tools.middleware.schema_effort import EFFORT_MAX, Effort, TooMuchEffortError
from runlane.worker.tools.middleware.schema_messages import UNCHECKABLE
from runlane.worker.tools.validation import UnfitError

UNIQUE = {"uniqueItems": True}


def validator(schema: Any, kind: type[Validator] = Draft202012Validator) -> Validator:
    return Effort().limited(kind)(schema, registry=Registry())


ALIKE = st.sampled_from(
    [0, 0.0, False, 1, 1.0, True, "", "1", None, [], {}, [0], [False], {"a": 1}]
)


@given(items=st.lists(JSON_VALUES | ALIKE, max_size=6))
@pytest.mark.parametrize("kind", [Draft4Validator, Draft202012Validator])
def test_unique_items_are_those_that_jsonschema_finds(
    kind: type[Validator], items: list[Any]
) -> None:
    assert validator(UNIQUE, kind).is_valid(items) is kind(UNIQUE).is_valid(items)


AS_JSON: list[tuple[Any, bool]] = [
    ([1, 1.0], False),
    ([1, True], True),
    ([[1], [True]], True),
    ([{"a": 0}, {"a": False}], True),
    ([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], False),
    ([[], {}], True),
    ([[False, 1], True, 1], True),
]


@pytest.mark.parametrize(("items", "unique"), AS_JSON)
def test_items_are_unique_as_json_values(items: Any, unique: bool) -> None:
    assert validator(UNIQUE).is_valid(items) is unique


@pytest.mark.parametrize("schema", [UNIQUE, {"items": {"type": "object", "required": ["a"]}}])
def test_a_long_array_is_checked(schema: Any) -> None:
    rows = [{"a": place} for place in range(20_000)]
    assert validator(schema).is_valid(rows)


BRANCHING: dict[str, Any] = {
    "anyOf": [
        {"properties": {"a": {"$ref": "#"}}, "required": ["b"]},
        {"properties": {"a": {"$ref": "#"}}, "required": ["c"]},
    ]
}


def nested(depth: int) -> Any:
    return json.loads('{"a":' * depth + "{}" + "}" * depth)


def test_a_check_that_branches_without_end_is_given_up() -> None:
    with pytest.raises(TooMuchEffortError):
        validator(BRANCHING).is_valid(nested(60))


@pytest.mark.parametrize("draft", [{}, {"$schema": Draft202012Validator.META_SCHEMA["$schema"]}])
async def test_arguments_that_take_too_long_to_check_are_an_error(draft: dict[str, str]) -> None:
    definition = ToolDefinition("t", parameters=BRANCHING | draft)
    context = replace(context_of_call(), arguments=nested(60), tool_definition=definition)

    async def reached(_: ToolCallContext) -> StepOutcome:
        pytest.fail("nobody knows whether they fit")

    with pytest.raises(UnfitError) as unfit:
        await ToolSchemaValidationMiddleware()(context, reached)
    assert unfit.value.errors == (ArgumentError("", "schema", UNCHECKABLE),)


async def test_each_check_may_take_as_long_as_the_one_before() -> None:
    rows = {"properties": {"rows": {"items": {"type": "null"}}}}
    context = replace(
        context_of_call(),
        arguments={"rows": [None] * (EFFORT_MAX - 10)},
        tool_definition=ToolDefinition("t", parameters=rows),
    )

    async def reached(_: ToolCallContext) -> StepOutcome:
        return StepOutcome("called")

    middleware = ToolSchemaValidationMiddleware()
    for _ in range(2):
        assert (await middleware(context, reached)).data == "called"
