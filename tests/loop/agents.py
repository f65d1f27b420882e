"""Tools that note what they do, and an agent that has them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.loop.memory_run import Journal
from tests.loop.scripted_model import USAGE, Answer, ScriptedModel

from runlane.journal.wire.messages import ModelUsage
from runlane.journal.wire.records import ToolStarted
from runlane.worker import (
    Agent,
    FunctionTool,
    ModelContext,
    RecoveryPolicy,
    RuntimePolicy,
    StepOutcome,
    ToolCallContext,
    ToolControl,
    ToolEffect,
    ToolMiddleware,
    tool,
)


@dataclass
class World:
    """What tools have done; it outlives every crash.

    Attributes:
        done: Tool name and operation key of each execution, oldest first.
        step: Called at each place where a process may die, with a word for it.
    """

    journal: Journal
    done: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    step: Callable[[str], None] = lambda _: None

    def act(self, name: str, context: ToolCallContext) -> None:
        """Do what a tool does, in the knowledge that it was announced."""
        self.step("before an effect")
        bodies = self.journal.bodies
        intents = [body.operation_key for body in bodies if isinstance(body, ToolStarted)]
        assert context.operation_key in intents, "an effect without an intent in the journal"
        self.done.append((name, context.operation_key))
        self.step("after an effect")

    def keys(self, name: str) -> list[str]:
        return [key for tool_name, key in self.done if tool_name == name]

    def tools(self) -> list[FunctionTool[..., Any]]:
        @tool(effect=ToolEffect.READ_ONLY)
        async def look(context: ToolCallContext) -> str:
            self.act("look", context)
            return "seen"

        @tool(effect=ToolEffect.IDEMPOTENT)
        async def stamp(context: ToolCallContext) -> str:
            self.act("stamp", context)
            return "stamped"

        @tool
        async def pay(context: ToolCallContext, amount: int = 1) -> str:
            self.act("pay", context)
            return f"paid {amount}"

        @tool
        async def charge(context: ToolCallContext) -> str:
            self.act("charge", context)
            return "charged"

        @charge.reconcile
        async def find_charge(context: ToolCallContext) -> str | None:
            return "charged" if context.operation_key in self.keys("charge") else None

        @tool
        async def fail(context: ToolCallContext) -> str:
            self.act("fail", context)
            raise ValueError("no luck")

        @tool(effect=ToolEffect.READ_ONLY)
        async def end(context: ToolCallContext, control: ToolControl) -> StepOutcome:
            self.act("end", context)
            await context.progress.report("ending")
            return StepOutcome({"control": control}, control)

        assert callable(find_charge)
        return [look, stamp, pay, charge, fail, end]


def agent_of(
    answers: Sequence[Answer],
    world: World,
    *,
    more: Sequence[FunctionTool[..., Any]] = (),
    recovery_policy: RecoveryPolicy = RecoveryPolicy.REPORT,
    hooks: Sequence[object] = (),
    middlewares: Sequence[ToolMiddleware] = (),
    usage: ModelUsage | None = USAGE,
    **policy: Any,
) -> Agent:
    """Return an agent with the world's tools; what is not named here is of its `RuntimePolicy`."""
    return Agent(
        "agent",
        ScriptedModel(answers, step=world.step, usage=usage),
        system_prompt="You are a test.",
        tools=[*world.tools(), *more],
        middlewares=middlewares,
        behavior_hooks=hooks,
        runtime_policy=RuntimePolicy(**policy),
        recovery_policy=recovery_policy,
    )


def asked(agent: Agent) -> list[ModelContext]:
    """Return what the model of the agent was asked, oldest first."""
    assert isinstance(agent.model, ScriptedModel)
    return agent.model.contexts
