import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.tools.middleware.support import Intents, call
from tests.tools.support import context_of_call, execute, runtime_of

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.messages import ModelToolCall
from runlane.journal.wire.records import ToolOutcome
from runlane.worker.tools import (
    BaseHandler,
    PreparedCall,
    StepOutcome,
    ToolCallContext,
    ToolControl,
    ToolDefinition,
    ToolResult,
    ToolRuntime,
    ToolSchemaConfigurationError,
    ToolSchemaValidationMiddleware,
)
from runlane.worker.tools.middleware.schema_messages import ANY_BREACH, MESSAGES, UNCHECKABLE
from runlane.worker.tools.validation import UnfitError

MARKER = "hunter2"


class Offering(BaseHandler):
    """Offers one tool, `t`, and notes its life."""

    def __init__(self, parameters: Mapping[str, Any] | None, life: list[str] | None = None) -> None:
        self._definitions = (ToolDefinition("t", parameters=parameters),)
        self._life = [] if life is None else life

    @property
    def tool_definitions(self) -> Sequence[ToolDefinition]:
        return self._definitions

    async def startup(self) -> None:
        self._life.append("start")

    async def shutdown(self) -> None:
        self._life.append("stop")

    async def dispatch(
        self, name: str, arguments: dict[str, Any], *, context: ToolCallContext
    ) -> StepOutcome:
        return StepOutcome("called")


async def check(
    parameters: Mapping[str, Any] | None,
    arguments: dict[str, Any],
    *,
    max_errors: int = 8,
    intents: Intents | None = None,
) -> ToolResult:
    middleware = ToolSchemaValidationMiddleware(max_errors)
    async with runtime_of(handlers=[Offering(parameters)], middlewares=[middleware]) as runtime:
        return await call(runtime, "t", intents=intents, **arguments)


async def errors_of(
    parameters: Mapping[str, Any], arguments: dict[str, Any]
) -> list[tuple[str, str, str]]:
    payload = json.loads((await check(parameters, arguments)).content)
    return [(each["path"], each["keyword"], each["message"]) for each in payload["errors"]]


TRANSFER = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "minimum": 1},
        "to": {"type": "object", "required": ["iban"]},
    },
    "required": ["amount", "to"],
    "additionalProperties": False,
}


async def test_arguments_that_fit_reach_the_tool() -> None:
    intents = Intents()
    arguments = {"amount": 1, "to": {"iban": "x"}}
    result = await check(TRANSFER, arguments, intents=intents)
    assert result == ToolResult("called", ToolOutcome.OK)
    assert intents.begun == [arguments]


async def test_arguments_that_do_not_fit_are_an_error_that_the_model_may_correct() -> None:
    intents = Intents()
    arguments: dict[str, Any] = {"amount": MARKER, "to": {}, "x": MARKER}
    result = await check(TRANSFER, arguments, intents=intents)
    assert intents.begun == []
    assert (result.outcome, result.control) == (ToolOutcome.ERROR, ToolControl.CONTINUE)
    assert json.loads(result.content) == {
        "status": "error",
        "tool": "t",
        "code": "invalid_tool_arguments",
        "errors": [
            {
                "path": "",
                "keyword": "additionalProperties",
                "message": "unexpected properties are not allowed",
            },
            {
                "path": "/amount",
                "keyword": "type",
                "message": "value does not match the required type",
            },
            {
                "path": "/to/iban",
                "keyword": "required",
                "message": "required property is missing",
            },
        ],
    }


@pytest.mark.parametrize("parameters", [None, {}])
async def test_a_tool_without_parameters_takes_anything(parameters: dict[str, Any] | None) -> None:
    assert (await check(parameters, {"anything": [1]})).content == "called"


async def test_each_property_that_is_missing_is_named() -> None:
    found = await errors_of({"required": ["b", "a'", "c"]}, {"b": 1})
    assert [path for path, _, _ in found] == ["/a'", "/c"]


BREACHES: list[tuple[dict[str, Any], Any, str]] = [
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "anyOf"),
    ({"const": 1}, MARKER, "const"),
    ({"contains": {"type": "null"}}, [MARKER], "contains"),
    ({"dependentRequired": {"a": ["b"]}}, {"a": MARKER}, "dependentRequired"),
    ({"enum": [1]}, MARKER, "enum"),
    ({"exclusiveMaximum": 1}, 1, "exclusiveMaximum"),
    ({"exclusiveMinimum": 1}, 1, "exclusiveMinimum"),
    ({"maxItems": 0}, [MARKER], "maxItems"),
    ({"maxLength": 1}, MARKER, "maxLength"),
    ({"maxProperties": 0}, {"a": MARKER}, "maxProperties"),
    ({"maximum": 1}, 2, "maximum"),
    ({"minItems": 2}, [MARKER], "minItems"),
    ({"minLength": 100}, MARKER, "minLength"),
    ({"minProperties": 2}, {"a": MARKER}, "minProperties"),
    ({"minimum": 1}, 0, "minimum"),
    ({"multipleOf": 2}, 3, "multipleOf"),
    ({"not": {"type": "string"}}, MARKER, "not"),
    ({"oneOf": [{"type": "string"}, {"minLength": 1}]}, MARKER, "oneOf"),
    ({"pattern": "^a"}, MARKER, "pattern"),
    ({"propertyNames": {"maxLength": 1}}, {"long": MARKER}, "maxLength"),
    ({"type": ["integer", "null"]}, MARKER, "type"),
    ({"uniqueItems": True}, [MARKER, MARKER], "uniqueItems"),
]


@pytest.mark.parametrize(("schema", "value", "keyword"), BREACHES)
async def test_each_keyword_has_a_message_of_its_own(
    schema: dict[str, Any], value: Any, keyword: str
) -> None:
    found = await errors_of({"properties": {"a": schema}}, {"a": value})
    assert found == [("/a", keyword, MESSAGES[keyword])]


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [(False, "schema"), ({"unevaluatedProperties": False}, "unevaluatedProperties")],
)
async def test_any_other_keyword_has_the_same_message(schema: Any, keyword: str) -> None:
    found = await errors_of({"properties": {"a": schema}}, {"a": {"b": 1}})
    assert (keyword, ANY_BREACH) in [(each, message) for _, each, message in found]


async def test_a_path_is_a_json_pointer() -> None:
    items = {"type": "array", "items": {"additionalProperties": {"type": "integer"}}}
    found = await errors_of({"properties": {"a/b": items}}, {"a/b": [{}, {"~c": MARKER}]})
    assert found == [("/a~1b/1/~0c", "type", MESSAGES["type"])]


async def test_a_long_path_is_cut() -> None:
    parameters = {"additionalProperties": {"type": "integer"}}
    result = await check(parameters, {f"{i}" + "k" * 1_000_000: MARKER for i in range(3)})
    assert len(result.content) < 4000
    assert MARKER not in result.content


ROWS = {"properties": {"rows": {"items": {"type": "integer"}}}}


async def test_of_many_errors_the_first_are_told_in_order() -> None:
    wrong = {"rows": [MARKER] * 12}
    payload = json.loads((await check(ROWS, wrong, max_errors=11)).content)
    assert [each["path"] for each in payload["errors"]] == [
        f"/rows/{place}" for place in (0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9)
    ]
    assert payload["truncated"] is True
    assert "truncated" not in json.loads((await check(ROWS, wrong, max_errors=12)).content)


async def test_eight_errors_are_told_by_default() -> None:
    middleware = ToolSchemaValidationMiddleware()
    async with runtime_of(handlers=[Offering(ROWS)], middlewares=[middleware]) as runtime:
        result = await call(runtime, "t", rows=[MARKER] * 9)
    payload = json.loads(result.content)
    assert (len(payload["errors"]), payload["truncated"]) == (8, True)


@pytest.mark.parametrize("max_errors", [0, -1, True, 1.0, "1", None])
def test_the_number_of_errors_is_an_integer_over_zero(max_errors: Any) -> None:
    with pytest.raises(InvalidInputError, match="max_errors must be an integer over 0"):
        ToolSchemaValidationMiddleware(max_errors)


async def test_the_draft_is_that_of_the_schema() -> None:
    pair = {"properties": {"a": {"items": [{"type": "integer"}], "additionalItems": False}}}
    old = {"$schema": "http://json-schema.org/draft-07/schema#"} | pair
    assert await errors_of(old, {"a": [1, 2]}) == [("/a", "additionalItems", ANY_BREACH)]
    new = {"properties": {"a": {"prefixItems": [{"type": "integer"}], "items": False}}}
    assert await errors_of(new, {"a": [1, 2]}) == [("/a", "items", ANY_BREACH)]


async def test_an_unknown_draft_is_read_as_the_newest() -> None:
    parameters = {"$schema": "https://example.com/ours", "required": ["a"]}
    assert len(await errors_of(parameters, {})) == 1


async def test_formats_are_not_checked() -> None:
    assert (await check({"properties": {"a": {"format": "date"}}}, {"a": "no"})).content == "called"


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "nonsense"},
        {"properties": {"a": {"pattern": "["}}},
        {"required": "a"},
        {"$schema": 5},
        {"$schema": []},
        {"$id": 5},
        {"$ref": 5},
        {"multipleOf": 0},
        {"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": 5},
    ],
)
async def test_an_invalid_schema_fails_the_start_which_is_undone(
    parameters: dict[str, Any],
) -> None:
    life: list[str] = []
    runtime = ToolRuntime([Offering(parameters, life)], [ToolSchemaValidationMiddleware()])
    with pytest.raises(ToolSchemaConfigurationError, match="tool 't' contains an invalid") as error:
        await runtime.startup()
    assert error.value.tool_name == "t"
    assert life == ["start", "stop"]


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/missing", "#nowhere", "other.json", "http://127.0.0.1:9/x.json"],
)
async def test_a_reference_out_of_the_schema_is_an_error_of_the_call(reference: str) -> None:
    intents = Intents()
    parameters = {"properties": {"a": {"$ref": reference}}}
    result = await check(parameters, {"a": MARKER}, intents=intents)
    assert intents.begun == []
    assert json.loads(result.content) == {
        "status": "error",
        "tool": "t",
        "error": "tool 't' contains an invalid parameters schema: a reference in it leads to "
        "nothing that is part of it",
    }


@pytest.mark.filterwarnings("ignore:.*remote references:DeprecationWarning")
async def test_nothing_is_fetched(tmp_path: Path) -> None:
    (tmp_path / "number.json").write_text('{"type": "number"}')
    parameters = {"properties": {"a": {"$ref": (tmp_path / "number.json").as_uri()}}}
    assert "contains an invalid parameters schema" in (await check(parameters, {"a": ""})).content


async def test_a_reference_inside_the_schema_is_followed() -> None:
    parameters = {
        "properties": {"a": {"$ref": "#/$defs/positive"}},
        "$defs": {"positive": {"minimum": 1}},
    }
    assert await errors_of(parameters, {"a": 0}) == [("/a", "minimum", MESSAGES["minimum"])]


TREE: dict[str, Any] = {"properties": {"inner": {"$ref": "#"}, "size": {"multipleOf": 0.5}}}


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"inner": value}
    return value


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        (TREE, nested(400)),
        (TREE, {"size": 10**400}),
        ({"$ref": "#"}, {}),
    ],
)
async def test_arguments_that_cannot_be_checked_are_an_error(
    parameters: dict[str, Any], arguments: dict[str, Any]
) -> None:
    assert await errors_of(parameters, arguments) == [("", "schema", UNCHECKABLE)]


@pytest.mark.parametrize(
    "written",
    [
        '{"inner":' * 300 + "{}" + "}" * 300,
        '{"inner":' * 990 + "{}" + "}" * 990,
        '{"inner":' * 100_000,
        '{"size":' + "9" * 4000 + "}",
        '{"rows":[' + ",".join(["[]"] * 100_000) + "]}",
        '{"' + "k" * 1_000_000 + '":1}',
    ],
)
async def test_whatever_a_model_writes_gives_a_result(written: str) -> None:
    properties: dict[str, Any] = {**TREE["properties"], **ROWS["properties"]}
    parameters = {"additionalProperties": False, "properties": properties}
    handlers, middlewares = [Offering(parameters)], [ToolSchemaValidationMiddleware()]
    async with runtime_of(handlers=handlers, middlewares=middlewares) as runtime:
        ready = runtime.prepare(ModelToolCall("1", "t", written))
        if isinstance(ready, PreparedCall):
            result = await execute(runtime, ready)
        else:
            result = ready.result
    assert result.content == "called" or result.is_error
    assert len(result.content) < 10_000


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([MARKER, f"{MARKER}' is a required property", 1, 1.5, True, None]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=6,
)

SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        [schema for schema, _, _ in BREACHES] + [True, False, {"required": ["b", "c"]}]
    ),
    lambda inner: (
        st.fixed_dictionaries({"additionalProperties": inner})
        | st.fixed_dictionaries({"items": inner})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)})
        | st.fixed_dictionaries({"not": inner})
        | st.fixed_dictionaries({"propertyNames": inner})
    ),
    max_leaves=4,
)


@given(schema=SCHEMAS, value=VALUES)
async def test_no_value_of_an_argument_is_ever_told(schema: Any, value: Any) -> None:
    definition = ToolDefinition("t", parameters={"properties": {"a": schema}, "maxProperties": 1})
    middleware = ToolSchemaValidationMiddleware()
    middleware.configure_tools([definition])
    arguments = {"a": value, "b": MARKER}
    context = replace(context_of_call(), arguments=arguments, tool_definition=definition)

    async def reached(_: ToolCallContext) -> StepOutcome:
        pytest.fail("there is a property too many")

    with pytest.raises(UnfitError) as unfit:
        await middleware(context, reached)
    told = ToolResult.invalid("t", unfit.value.errors, truncated=unfit.value.truncated)
    assert MARKER not in told.content
    assert MARKER not in repr(unfit.value.errors)


async def test_agents_that_share_it_may_have_different_tools_of_one_name() -> None:
    middleware = ToolSchemaValidationMiddleware()
    other = runtime_of(handlers=[Offering({"required": ["b"]})], middlewares=[middleware])
    one = runtime_of(handlers=[Offering({"required": ["a"]})], middlewares=[middleware])
    async with one as first, other as second:
        assert (await call(first, "t", a=1)).content == "called"
        assert (await call(second, "t", b=1)).content == "called"
        assert (await call(second, "t", a=1)).is_error


async def test_a_definition_that_it_was_not_told_of_is_checked_too() -> None:
    definition = ToolDefinition("t", parameters={"required": ["a"]})
    context = replace(context_of_call(), tool_definition=definition)

    async def reached(_: ToolCallContext) -> StepOutcome:
        pytest.fail("a is missing")

    with pytest.raises(UnfitError):
        await ToolSchemaValidationMiddleware()(context, reached)


def test_it_decides_at_once() -> None:
    assert ToolSchemaValidationMiddleware().immediate
