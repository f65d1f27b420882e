"""Somebody is asked before a tool does what cannot be undone."""

from examples.local import model, run, serving
from runlane.worker import (
    Agent,
    App,
    RuleBasedToolPolicy,
    ToolApprovalDecision,
    ToolApprovalRequest,
    ToolEffect,
    ToolPolicyAction,
    ToolPolicyMiddleware,
    ToolPolicyRule,
    tool,
)

CENTS_MAX = 1000
RULES = [
    ToolPolicyRule("reading", ToolPolicyAction.ALLOW, effects=frozenset({ToolEffect.READ_ONLY})),
    ToolPolicyRule(
        "money",
        ToolPolicyAction.REQUIRE_APPROVAL,
        tool_names=frozenset({"refund"}),
        max_calls_per_run=3,
        reason="money leaves the house",
    ),
]  # whatever matches no rule is denied


class Cashier:
    """Decides in this process; it could as well wait for somebody who reads their mail."""

    async def approve(self, request: ToolApprovalRequest) -> ToolApprovalDecision:
        """Say whether the call may be made."""
        approved = request.arguments["cents"] <= CENTS_MAX
        print(f"{request.tool_name} {dict(request.arguments)}: {request.reason}? {approved}")
        return ToolApprovalDecision(approved, None if approved else "ask the manager")


@tool(effect=ToolEffect.SIDE_EFFECTING)
async def refund(cents: int) -> str:
    """Pay something back."""
    return f"{cents} cents are paid back"


middleware = ToolPolicyMiddleware(RuleBasedToolPolicy(RULES), Cashier(), approval_timeout_s=60)
app = App([Agent("cashier", model(), tools=[refund], middlewares=[middleware])])


async def main() -> None:
    async with serving(app) as client:
        session = client.session("cashier-1", agent="cashier")
        for cents in (500, 5000):
            result = await (await session.run(f'[[tool refund {{"cents": {cents}}}]]'))
            print(f"{result.status}: {result.output}")


if __name__ == "__main__":
    run(main)
