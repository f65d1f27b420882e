import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from tests.tools.support import NASTY_TEXT, call_of, runtime_of

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.messages import ModelToolCall
from runlane.journal.wire.records import ToolOutcome
from runlane.worker.tools import (
    BaseHandler,
    FunctionToolHandler,
    PreparedCall,
    StepOutcome,
    ToolCallContext,
    ToolDefinition,
    ToolEffect,
    ToolFailure,
    ToolRuntime,
    tool,
)


@tool(effect=ToolEffect.READ_ONLY, timeout_s=3)
def look(city: str, days: int = 1) -> str:
    """Look at the weather."""
    pytest.fail("prepare runs nothing")


class Recorder(BaseHandler):
    """Notes its life in a list that several share."""

    def __init__(self, name: str, life: list[str], *, fails: str = "") -> None:
        self._name = name
        self._life = life
        self._fails = fails

    @property
    def tool_definitions(self) -> Sequence[ToolDefinition]:
        return (ToolDefinition(self._name),)

    async def startup(self) -> None:
        self._note("start")

    async def shutdown(self) -> None:
        self._note("stop")

    async def dispatch(
        self, name: str, arguments: dict[str, Any], *, context: ToolCallContext
    ) -> StepOutcome:
        return StepOutcome(name)

    def _note(self, moment: str) -> None:
        self._life.append(f"{moment} {self._name}")
        if self._fails == moment:
            raise RuntimeError(f"{moment} {self._name} failed")


def names(runtime: ToolRuntime) -> list[str]:
    return [each.name for each in runtime.definitions]


async def test_handlers_start_in_order_and_stop_in_reverse() -> None:
    life: list[str] = []
    runtime = ToolRuntime([Recorder("a", life), Recorder("b", life)])
    assert names(runtime) == []
    await runtime.startup()
    assert names(runtime) == ["a", "b"]
    await runtime.shutdown()
    assert life == ["start a", "start b", "stop b", "stop a"]
    assert names(runtime) == []


async def test_a_failed_start_stops_what_had_started() -> None:
    life: list[str] = []
    handlers = [Recorder("a", life), Recorder("b", life), Recorder("c", life, fails="start")]
    runtime = ToolRuntime(handlers)
    with pytest.raises(RuntimeError, match="start c failed"):
        await runtime.startup()
    assert life == ["start a", "start b", "start c", "stop b", "stop a"]
    await runtime.shutdown()
    assert len(life) == 5


async def test_a_failed_stop_does_not_keep_the_others_from_stopping() -> None:
    life: list[str] = []
    runtime = ToolRuntime([Recorder("a", life), Recorder("b", life, fails="stop")])
    await runtime.startup()
    with pytest.raises(RuntimeError, match="stop b failed"):
        await runtime.shutdown()
    assert life[2:] == ["stop b", "stop a"]


async def test_two_handlers_must_not_offer_one_name() -> None:
    life: list[str] = []
    runtime = ToolRuntime([Recorder("a", life), Recorder("a", life)])
    with pytest.raises(InvalidInputError, match="two tools are named 'a'"):
        await runtime.startup()
    assert life == ["start a", "start a", "stop a", "stop a"]


async def test_a_call_that_fits_is_prepared() -> None:
    async with runtime_of(look) as runtime:
        ready = runtime.prepare(call_of("look", city="Rome"))
    assert isinstance(ready, PreparedCall)
    assert ready.definition == look.definition
    assert ready.effect is ToolEffect.READ_ONLY
    assert ready.arguments == {"city": "Rome"}
    assert ready.timeout_s == 3


@pytest.mark.parametrize("arguments", ["", " \n", "{}"])
async def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    async with runtime_of(handlers=[Recorder("a", [])]) as runtime:
        ready = runtime.prepare(ModelToolCall("1", "a", arguments))
    assert isinstance(ready, PreparedCall)
    assert ready.arguments == {}
    assert ready.timeout_s is None
    assert ready.effect is ToolEffect.SIDE_EFFECTING


async def test_an_unknown_tool_is_an_error_that_names_the_known_ones() -> None:
    async with runtime_of(look) as runtime:
        failure = runtime.prepare(call_of("lok"))
    assert isinstance(failure, ToolFailure)
    assert failure.effect is ToolEffect.SIDE_EFFECTING
    assert failure.result.outcome is ToolOutcome.ERROR
    assert json.loads(failure.result.content) == {
        "status": "error",
        "tool": "lok",
        "error": "unknown tool; there are: look",
    }


async def test_arguments_that_do_not_fit_are_an_error_without_values() -> None:
    async with runtime_of(look) as runtime:
        failure = runtime.prepare(call_of("look", city=12345))
    assert isinstance(failure, ToolFailure)
    assert failure.effect is ToolEffect.READ_ONLY
    assert json.loads(failure.result.content) == {
        "status": "error",
        "tool": "look",
        "code": "invalid_tool_arguments",
        "errors": [
            {"path": "/city", "keyword": "type", "message": "Expected `str`, got `int`"},
        ],
    }


@pytest.mark.parametrize(
    "arguments", ["[1]", "null", "1", '"a"', "{", '{"a": NaN}', '{"a": 1} x', '{"a": "\ud800"}']
)
async def test_arguments_that_are_not_a_json_object_are_an_error(arguments: str) -> None:
    async with runtime_of(look) as runtime:
        failure = runtime.prepare(ModelToolCall("1", "look", arguments))
    assert isinstance(failure, ToolFailure)
    assert "the arguments are not a JSON object" in failure.result.content


@given(name=NASTY_TEXT, arguments=NASTY_TEXT)
@example(name="look", arguments="[" * 100_000)
@example(name="look", arguments='{"city":' * 100_000)
@example(name="look", arguments='{"city": 1e999}')
@example(name="look", arguments='{"city": ' + "9" * 10_000 + "}")
@settings(deadline=None)
async def test_prepare_never_raises(name: str, arguments: str) -> None:
    async with runtime_of(look, handlers=[Recorder("a", [])]) as runtime:
        for each in (name, "look", "a"):
            answer = runtime.prepare(ModelToolCall("1", each, arguments))
            if isinstance(answer, ToolFailure):
                answer.result.content.encode()


async def test_functions_and_handlers_live_side_by_side() -> None:
    runtime = ToolRuntime([FunctionToolHandler([look]), Recorder("a", [])])
    await runtime.startup()
    assert names(runtime) == ["look", "a"]
    await runtime.shutdown()
