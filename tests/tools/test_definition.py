import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools.support import JSON_VALUES

from runlane.journal.errors import InvalidInputError
from runlane.worker.tools import ToolDefinition, ToolEffect

PARAMETERS = st.dictionaries(st.text(alphabet=list("ab$"), max_size=3), JSON_VALUES, max_size=4)


@given(
    parameters=st.none() | PARAMETERS,
    description=st.none() | st.just("Look."),
    strict=st.none() | st.booleans(),
)
@settings(deadline=None)
def test_the_openai_dictionary_reads_back(
    parameters: dict[str, Any] | None, description: str | None, strict: bool | None
) -> None:
    definition = ToolDefinition("look-up_1", description, parameters, strict=strict)
    tool = definition.to_openai_tool()
    assert json.loads(json.dumps(tool)) == tool
    assert ToolDefinition.from_openai_tool(tool) == definition
    if parameters is not None:
        assert tool["function"]["parameters"] == parameters
    assert msgspec.json.decode(msgspec.json.encode(definition.schema.parameters)) == (
        parameters or {"type": "object", "properties": {}}
    )


def test_an_undeclared_effect_is_side_effecting() -> None:
    tool = {"type": "function", "function": {"name": "pay"}}
    definition = ToolDefinition.from_openai_tool(tool)
    assert definition.effect is ToolEffect.SIDE_EFFECTING
    declared = definition.with_effect(ToolEffect.READ_ONLY)
    assert declared.effect is ToolEffect.READ_ONLY
    assert declared.to_openai_tool() == tool


def test_nothing_outside_can_change_the_parameters() -> None:
    given_parameters: dict[str, Any] = {"properties": {"a": {"enum": [1]}}}
    definition = ToolDefinition("t", parameters=given_parameters)
    given_parameters["properties"]["a"]["enum"].append(2)
    definition.to_openai_tool()["function"]["parameters"].clear()
    definition.schema.parameters["properties"].clear()
    assert definition.schema.parameters == {"properties": {"a": {"enum": [1]}}}
    assert definition.parameters is not None
    with pytest.raises(TypeError):
        definition.parameters["properties"]["a"]["enum"] = []
    assert definition.with_effect(ToolEffect.READ_ONLY).parameters == definition.parameters


@pytest.mark.parametrize("name", ["", "a b", "é", "a" * 65, "a\n", "a.b"])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="tool name"):
        ToolDefinition(name)


def test_an_unknown_effect_is_refused() -> None:
    effect: Any = "harmless"
    with pytest.raises(InvalidInputError, match="unknown effect 'harmless'"):
        ToolDefinition("t", effect=effect)


@pytest.mark.parametrize(
    "parameters",
    [{"a": float("nan")}, {"a": float("inf")}, {"a": object()}, {"a": "\ud800"}, {("a",): 1}, []],
)
def test_parameters_that_are_not_a_json_object_are_refused(parameters: Any) -> None:
    with pytest.raises(InvalidInputError, match="parameters are not a JSON object"):
        ToolDefinition("t", parameters=parameters)


@pytest.mark.parametrize(
    "tool",
    [
        {},
        {"type": "custom", "function": {"name": "t"}},
        {"type": "function"},
        {"type": "function", "function": {"name": 1}},
        {"type": "function", "function": {"name": "t", "parameters": []}},
        {"type": "function", "function": {"name": "t", "strict": "yes"}},
    ],
)
def test_another_shape_than_openais_is_refused(tool: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="not an OpenAI function tool"):
        ToolDefinition.from_openai_tool(tool)
