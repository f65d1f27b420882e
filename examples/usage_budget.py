"""What a run may spend. What is under way settles, and no further model request is sent."""

from examples.local import model, run, serving
from runlane.worker import Agent, App, BudgetLimits, RuntimePolicy, ToolEffect, tool


@tool(effect=ToolEffect.READ_ONLY)
async def read(chapter: int) -> str:
    """Read a chapter."""
    return f"chapter {chapter}: " + "and so on " * 50


policy = RuntimePolicy(
    max_steps=20,
    budget=BudgetLimits(max_total_tokens=400, max_tool_calls=10, max_wall_s=60),
    session_budget=BudgetLimits(max_total_tokens=100_000),
)
app = App([Agent("thrifty", model(), tools=[read], runtime_policy=policy)])
TASK = "".join(f'[[tool read {{"chapter": {number}}}]]' for number in range(9))


async def main() -> None:
    async with serving(app) as client:
        result = await (await client.session("thrifty-1", agent="thrifty").run(TASK))
        print(f"{result.status} after {result.turns} turns: {result.stop_reason}, {result.error}")
        print(f"{result.usage.input_tokens} tokens in, {result.usage.output_tokens} out")


if __name__ == "__main__":
    run(main)
