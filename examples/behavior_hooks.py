"""Hooks look at the moments of a run, and may have a say in how it goes on."""

from examples.local import model, run, serving
from runlane.worker import (
    Agent,
    App,
    BehaviorDecision,
    CancellationToken,
    HookedCall,
    ToolEffect,
    TurnSnapshot,
    tool,
)

AMOUNT_MAX = 100
TURNS_MAX = 2


class Careful:
    """Any method of `BehaviorHook` may be missing. One object serves all runs."""

    async def before_tool(
        self, snapshot: TurnSnapshot, call: HookedCall, *, cancellation: CancellationToken
    ) -> BehaviorDecision | None:
        """Let the call be made with less."""
        if call.arguments.get("amount", 0) <= AMOUNT_MAX:
            return None
        return BehaviorDecision.replace_arguments({"amount": AMOUNT_MAX})

    async def after_turn(
        self, snapshot: TurnSnapshot, *, cancellation: CancellationToken
    ) -> BehaviorDecision | None:
        """End the run early."""
        print(f"turn {snapshot.turn}: {snapshot.messages[-1].content}")
        if snapshot.turn < TURNS_MAX:
            return None
        return BehaviorDecision.stop(output="two turns are enough")


@tool(effect=ToolEffect.IDEMPOTENT)
async def order(amount: int) -> str:
    """Order something."""
    return f"{amount} pieces are ordered"


app = App([Agent("hooked", model(), tools=[order], behavior_hooks=[Careful()])])
TASK = " ".join(f'[[tool order {{"amount": {amount}}}]]' for amount in (5, 5000, 7))


async def main() -> None:
    async with serving(app) as client:
        result = await (await client.session("hooked-1", agent="hooked").run(TASK))
        print(f"{result.stop_reason}: {result.output}")


if __name__ == "__main__":
    run(main)
