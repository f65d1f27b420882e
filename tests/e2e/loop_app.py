"""What the workers of the loop's tests serve: agents that differ in what surrounds the loop.

Tools, ledger and gates are those of `apps`.
"""

from tests.e2e.apps import TOOLS

from runlane.worker import (
    Agent,
    App,
    BehaviorDecision,
    BudgetLimits,
    CancellationToken,
    HookedCall,
    ModelConfig,
    OpenAIModelAdapter,
    RuleBasedToolPolicy,
    RuntimePolicy,
    StepOutcome,
    ToolCallContext,
    ToolControl,
    ToolEffect,
    ToolPolicyAction,
    ToolPolicyMiddleware,
    ToolPolicyRule,
    ToolSchemaValidationMiddleware,
    TurnSnapshot,
    tool,
)


@tool(effect=ToolEffect.READ_ONLY)
async def finish(summary: str) -> StepOutcome:
    """Say that the task is done."""
    return StepOutcome(summary, ToolControl.COMPLETE)


@tool(effect=ToolEffect.READ_ONLY)
async def end(control: ToolControl) -> StepOutcome:
    """Say how the run goes on."""
    return StepOutcome("that is all", control)


@tool(effect=ToolEffect.READ_ONLY)
async def report(context: ToolCallContext) -> str:
    """Say twice that it goes well."""
    await context.progress.report("well")
    await context.progress.report("very well")
    return "reported"


class StopAfterTwoTurns:
    """Pauses a run at a turn boundary."""

    async def after_turn(
        self, snapshot: TurnSnapshot, *, cancellation: CancellationToken
    ) -> BehaviorDecision | None:
        return BehaviorDecision.stop("paused") if snapshot.turn == 2 else None


class Interfering:
    """Does in the middle of a turn whatever the name of a tool says here."""

    async def before_tool(
        self, snapshot: TurnSnapshot, call: HookedCall, *, cancellation: CancellationToken
    ) -> BehaviorDecision | None:
        match call.tool_name:
            case "stamp":
                return BehaviorDecision.stop("stopped")
            case "charge":
                return BehaviorDecision.steer_with("[[say louder]]")
            case "recite":
                return BehaviorDecision.deny("too long")
            case "freeze":
                raise ValueError("no")
            case _:
                return None

    async def after_turn(
        self, snapshot: TurnSnapshot, *, cancellation: CancellationToken
    ) -> BehaviorDecision | None:
        assert snapshot.response is not None
        (asked, *_) = snapshot.response.tool_calls
        return BehaviorDecision.steer_with("[[say louder]]") if asked.name == "look" else None


POLICY = RuleBasedToolPolicy(
    (
        ToolPolicyRule(
            rule_id="two-payments",
            action=ToolPolicyAction.ALLOW,
            tool_names=frozenset({"pay", "hold_and_pay"}),
            max_calls_per_run=2,
        ),
        ToolPolicyRule(
            rule_id="looking",
            action=ToolPolicyAction.ALLOW,
            effects=frozenset({ToolEffect.READ_ONLY}),
        ),
    )
)

MODEL = OpenAIModelAdapter(ModelConfig.from_env())
PLAIN = RuntimePolicy(max_repeated_tool_calls=1000)

app = App(
    [
        Agent(
            "reader",
            MODEL,
            tools=[*TOOLS, end, report],
            runtime_policy=RuntimePolicy(
                max_repeated_tool_calls=1000, parallel_tool_calls=True, max_parallel_tool_calls=3
            ),
        ),
        Agent(
            "guarded",
            MODEL,
            tools=TOOLS,
            middlewares=[ToolSchemaValidationMiddleware(), ToolPolicyMiddleware(POLICY)],
            runtime_policy=PLAIN,
        ),
        Agent("paused", MODEL, tools=TOOLS, behavior_hooks=[StopAfterTwoTurns()]),
        Agent(
            "finisher",
            MODEL,
            tools=[*TOOLS, finish],
            runtime_policy=RuntimePolicy(require_explicit_finish=True),
        ),
        Agent(
            "spender",
            MODEL,
            tools=TOOLS,
            runtime_policy=RuntimePolicy(budget=BudgetLimits(max_tool_calls=3)),
        ),
        Agent("guard", MODEL, tools=[*TOOLS, end, report]),
        Agent("brief", MODEL, tools=TOOLS, runtime_policy=RuntimePolicy(max_steps=1)),
        Agent("interrupted", MODEL, tools=TOOLS, behavior_hooks=[Interfering()]),
    ]
)
