from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
from tests.tools.support import context_of_call

from runlane.journal.errors import InvalidInputError
from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.tools import (
    FunctionToolHandler,
    MethodToolHandler,
    StepOutcome,
    ToolContext,
    ToolDefinition,
    ToolProgressReporter,
    tool,
)

PING = ToolDefinition("ping")


class Methods(MethodToolHandler):
    tools: ClassVar[Sequence[ToolDefinition | Mapping[str, Any]]] = (
        PING,
        {"type": "function", "function": {"name": "all"}},
        {"type": "function", "function": {"name": "any"}},
        {"type": "function", "function": {"name": "wrong"}},
    )

    async def do_ping(self, arguments: dict[str, Any]) -> StepOutcome:
        return StepOutcome(arguments)

    async def do_all(
        self,
        arguments: dict[str, Any],
        *,
        cancellation: CancellationToken,
        progress: ToolProgressReporter,
        context: ToolContext,
    ) -> StepOutcome:
        assert (cancellation, progress) == (context.cancellation, context.progress)
        return StepOutcome(context.operation_key)

    async def do_any(self, arguments: dict[str, Any], **offered: Any) -> StepOutcome:
        return StepOutcome(sorted(offered))

    async def do_wrong(self, arguments: dict[str, Any]) -> str:
        return "text"


async def test_a_method_is_passed_what_it_accepts() -> None:
    handler = Methods()
    context = context_of_call()
    ping = await handler.dispatch("ping", {"a": 1}, context=context)
    assert ping == StepOutcome({"a": 1})
    assert (await handler.dispatch("all", {}, context=context)).data == "run:2:0"
    assert (await handler.dispatch("any", {}, context=context)).data == [
        "cancellation",
        "context",
        "progress",
    ]
    assert await handler.reconcile("ping", {}, context=context) is None


async def test_a_method_must_return_a_step_outcome() -> None:
    with pytest.raises(TypeError, match="do_wrong returned str instead of a StepOutcome"):
        await Methods().dispatch("wrong", {}, context=context_of_call())


def test_definitions_may_be_given() -> None:
    assert [each.name for each in Methods().tool_definitions] == ["ping", "all", "any", "wrong"]
    assert Methods([PING]).tool_definitions == (PING,)
    assert Methods([]).tool_definitions == ()


def test_a_definition_without_an_async_method_is_refused() -> None:
    class Sync(MethodToolHandler):
        def do_ping(self, arguments: dict[str, Any]) -> StepOutcome:
            return StepOutcome(arguments)

    with pytest.raises(InvalidInputError, match="Methods has no method `async def do_pong`"):
        Methods([ToolDefinition("pong")])
    with pytest.raises(InvalidInputError, match="Sync has no method `async def do_ping`"):
        Sync([PING])


def test_duplicate_names_are_refused() -> None:
    @tool
    def ping() -> None:
        """Do."""

    with pytest.raises(InvalidInputError, match="two tools are named 'ping'"):
        Methods([PING, PING])
    with pytest.raises(InvalidInputError, match="two tools are named 'ping'"):
        FunctionToolHandler([ping, ping])
