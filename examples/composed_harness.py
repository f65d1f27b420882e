"""What stands around a model and its tools is put together: here from parts of other examples."""

from examples.behavior_hooks import Careful, order
from examples.event_observers import Print
from examples.local import model, run, serving
from examples.permission_deny_list import delete, permissions
from examples.tool_approval import RULES, Cashier, refund
from runlane.worker import (
    Agent,
    App,
    BudgetLimits,
    RuleBasedToolPolicy,
    RuntimePolicy,
    StepOutcome,
    ToolCallContext,
    ToolMiddleware,
    ToolNext,
    ToolPolicyAction,
    ToolPolicyMiddleware,
    ToolPolicyRule,
)


class Announce(ToolMiddleware):
    """A middleware of one's own: it stands around each call, the first one outermost."""

    async def __call__(self, context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        """Count the call, in the journal: it goes on over crashes; and say what came of it."""
        outcome = await call_next(context)
        print(f"call {context.count('announced')} that was made: {outcome.data}")
        return outcome


ORDERS = ToolPolicyRule("orders", ToolPolicyAction.ALLOW, tool_names=frozenset({"order"}))
approvals = ToolPolicyMiddleware(RuleBasedToolPolicy([*RULES, ORDERS]), Cashier())
harness = Agent(
    "harness",
    model(),
    tools=[delete, order, refund],
    middlewares=[Announce(), permissions, approvals],
    behavior_hooks=[Careful()],
    event_sink=Print(),
    runtime_policy=RuntimePolicy(budget=BudgetLimits(max_requests=5)),
)
app = App([harness])
TASK = '[[tools delete {"name": "a"}; order {"amount": 5000}; refund {"cents": 500}]] [[say Done.]]'


async def main() -> None:
    async with serving(app) as client:
        result = await (await client.session("harness-1", agent="harness").run(TASK))
        print(f"{result.status}: {result.output}")


if __name__ == "__main__":
    run(main)
