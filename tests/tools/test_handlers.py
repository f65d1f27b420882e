import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import pytest
from tests.tools.support import context_of_call

from runlane.journal.errors import InvalidInputError
from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.tools import (
    BaseHandler,
    FunctionToolHandler,
    MethodToolHandler,
    StepOutcome,
    ToolCallContext,
    ToolDefinition,
    ToolEffect,
    ToolProgressReporter,
    ToolProgressUpdate,
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
        context: ToolCallContext,
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


def test_effects_may_be_given_by_name() -> None:
    handler = Methods(tool_effects={"ping": ToolEffect.READ_ONLY})
    effects = {each.name: each.effect for each in handler.tool_definitions}
    assert effects.pop("ping") is ToolEffect.READ_ONLY
    assert {*effects.values()} == {ToolEffect.SIDE_EFFECTING}
    with pytest.raises(InvalidInputError, match="effects of no tool: pong"):
        Methods(tool_effects={"pong": ToolEffect.READ_ONLY})


MOVED: Final = """
from collections.abc import Mapping
from typing import Any

from ejagent import (
    BaseHandler,
    CancellationToken,
    MethodToolHandler,
    StepOutcome,
    ToolEffect,
    ToolProgressReporter,
    ToolProgressUpdate,
)

LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look.",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    },
}
WAIT = {"type": "function", "function": {"name": "wait"}}


class Looking(MethodToolHandler):
    def __init__(self) -> None:
        super().__init__(tools=[LOOK, WAIT], tool_effects={"look": ToolEffect.READ_ONLY})

    async def do_look(
        self,
        arguments: dict[str, Any],
        *,
        cancellation: CancellationToken,
        progress: ToolProgressReporter,
    ) -> StepOutcome:
        await progress.report(ToolProgressUpdate("looking", {"at": arguments["at"]}))
        return StepOutcome(f"seen {arguments['at']}")

    async def do_wait(
        self, arguments: dict[str, Any], *, cancellation: CancellationToken
    ) -> StepOutcome:
        await cancellation.wait()
        return StepOutcome(cancellation.reason)


class Dispatching(BaseHandler):
    @property
    def tools(self):
        return [LOOK, WAIT]

    async def dispatch(
        self,
        tool_name: str,
        arguments: Mapping[str, Any],
        *,
        cancellation: CancellationToken | None = None,
    ) -> StepOutcome:
        if tool_name == "wait":
            await cancellation.wait()
            return StepOutcome(cancellation.reason)
        return StepOutcome(f"seen {arguments['at']}")


class Reporting(Dispatching):
    async def dispatch(self, tool_name, arguments, *, cancellation, progress=None):
        await progress.report(ToolProgressUpdate(tool_name))
        return StepOutcome(dict(arguments))
"""


@pytest.fixture(scope="module")
def moved() -> Mapping[str, Any]:
    """A module of handlers that were written for EJAgent, with another import."""
    module: dict[str, Any] = {}
    exec(MOVED.replace("from ejagent import", "from runlane.worker import"), module)
    return module


@pytest.mark.parametrize("name", ["Looking", "Dispatching"])
async def test_a_handler_moves_from_ejagent_by_its_import(
    moved: Mapping[str, Any], name: str
) -> None:
    handler: BaseHandler = moved[name]()
    assert [each.name for each in handler.tool_definitions] == ["look", "wait"]
    context = context_of_call()
    seen = await handler.dispatch("look", {"at": "stars"}, context=context)
    assert seen == StepOutcome("seen stars")
    waiting = asyncio.create_task(handler.dispatch("wait", {}, context=context))
    context.cancellation.cancel("enough")
    assert await waiting == StepOutcome("enough")


async def test_a_moved_handler_may_ask_for_progress_and_declare_effects(
    moved: Mapping[str, Any],
) -> None:
    heard: list[ToolProgressUpdate] = []
    context = context_of_call(heard=heard)
    look, wait = moved["Looking"]().tool_definitions
    assert (look.effect, wait.effect) == (ToolEffect.READ_ONLY, ToolEffect.SIDE_EFFECTING)
    await moved["Looking"]().dispatch("look", {"at": "stars"}, context=context)
    assert await moved["Reporting"]().dispatch("wait", {"a": 1}, context=context) == (
        StepOutcome({"a": 1})
    )
    assert heard == [ToolProgressUpdate("looking", {"at": "stars"}), ToolProgressUpdate("wait")]


def test_a_handler_that_prepares_for_each_task_is_told_that_nobody_calls_it() -> None:
    class Prepared(MethodToolHandler):
        tools = (PING,)

        async def on_task_start(self) -> None:
            """Forget the last task."""

        async def do_ping(self, arguments: dict[str, Any]) -> StepOutcome:
            return StepOutcome(arguments)

    with pytest.raises(InvalidInputError, match="Prepared has an on_task_start, which is never"):
        Prepared()


def test_a_handler_without_tools_is_refused() -> None:
    class Empty(BaseHandler):
        async def dispatch(
            self, name: str, arguments: dict[str, Any], *, context: ToolCallContext
        ) -> StepOutcome:
            return StepOutcome(name)

    with pytest.raises(InvalidInputError, match="Empty has no tools: list them as `tools`"):
        _ = Empty().tool_definitions
