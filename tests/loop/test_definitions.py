"""A definition that cannot be meant is refused when it is made, and says why."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.loop.agents import World, agent_of
from tests.loop.memory_run import Journal, MemoryRun
from tests.loop.scripted_model import ScriptedModel, call, calls, text

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.records import ToolCompleted
from runlane.worker import Agent, RecoveryPolicy, RuntimePolicy, ToolMiddleware, tool


class NoSink:
    """Has no emit."""


class SyncSink:
    def emit(self, event: object) -> None:
        """Not async."""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": None}, "model should be ModelAdapter"),
        ({"name": 5}, "name should be str"),
        ({"system_prompt": 5}, "system_prompt should be str"),
        ({"tools": [print]}, "each of tools should be FunctionTool"),
        ({"tools": 5}, "tools should be Sequence"),
        ({"handlers": [object()]}, "each of handlers should be BaseHandler"),
        ({"middlewares": [ToolMiddleware]}, "each of middlewares should be ToolMiddleware"),
        ({"context_transform": 5}, "context_transform should be"),
        ({"hint_provider": "hi"}, "hint_provider should be"),
        ({"event_sink": NoSink()}, "event_sink needs a method"),
        ({"event_sink": SyncSink()}, "event_sink needs a method"),
        ({"runtime_policy": {"max_steps": 1}}, "runtime_policy should be"),
        ({"recovery_policy": "x"}, "use one of report, fail"),
    ],
)
def test_an_agent_of_the_wrong_parts_is_refused(options: dict[str, Any], words: str) -> None:
    parts: dict[str, Any] = {"name": "agent", "model": ScriptedModel([]), **options}
    with pytest.raises(InvalidInputError, match=words):
        Agent(**parts)


def test_a_budget_of_another_type_is_refused() -> None:
    unchecked: Any = {"max_requests": 1}
    with pytest.raises(InvalidInputError, match="budget should be BudgetLimits"):
        RuntimePolicy(budget=unchecked)


def test_a_recovery_policy_may_be_named_by_its_value() -> None:
    unchecked: Any = "report"
    agent = Agent("agent", ScriptedModel([]), recovery_policy=unchecked)
    assert agent.recovery_policy is RecoveryPolicy.REPORT


@dataclass
class Address:
    street: str
    number: int = 1
    tags: list[str] = field(default_factory=list[str])


async def test_a_dataclass_keeps_its_defaults_on_the_way_through_a_tool(
    run: MemoryRun, world: World, journal: Journal
) -> None:
    @tool
    async def send(to: Address) -> dict[str, Address]:
        """Send something."""
        return {"to": to}

    answers = [calls(call("send", to={"street": "x"})), text("done")]
    await run.carry_on(agent_of(answers, world, more=[send]))
    (body,) = [body for body in journal.bodies if isinstance(body, ToolCompleted)]
    assert body.message.content == '{"to": {"street": "x", "number": 1, "tags": []}}'
