"""An agent that is done when a tool says so, not when it happens to say something."""

from examples.local import model, run, serving
from runlane.worker import Agent, App, RuntimePolicy, StepOutcome, ToolControl, ToolEffect, tool


@tool(effect=ToolEffect.READ_ONLY)
async def finish(summary: str) -> StepOutcome:
    """Hand the work in."""
    return StepOutcome({"summary": summary}, ToolControl.COMPLETE)


policy = RuntimePolicy(require_explicit_finish=True, max_no_tool_responses=2)
app = App([Agent("finisher", model(), tools=[finish], runtime_policy=policy)])


async def main() -> None:
    async with serving(app) as client:
        session = client.session("finisher-1", agent="finisher")
        for task in ('[[tool finish {"summary": "all is well"}]]', "Just talk."):
            result = await (await session.run(task))
            print(f"{result.status}, {result.stop_reason}: {result.output or result.error}")


if __name__ == "__main__":
    run(main)
