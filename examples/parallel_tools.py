"""Read-only calls that stand side by side in a response run at the same time."""

import asyncio

from examples.local import model, run, serving
from runlane.producer import EventKind
from runlane.worker import Agent, App, RuntimePolicy, ToolEffect, tool

all_three = asyncio.Barrier(3)


@tool(effect=ToolEffect.READ_ONLY, timeout_s=10)
async def weather(city: str) -> str:
    """Say how the weather is; here it waits until three calls are under way."""
    await all_three.wait()
    return f"{city}: sunny"


@tool(effect=ToolEffect.SIDE_EFFECTING)
async def book(city: str) -> str:
    """Book a journey; what is not read-only runs alone, when its turn comes."""
    return f"a train to {city} is booked"


policy = RuntimePolicy(parallel_tool_calls=True, max_parallel_tool_calls=4)
app = App([Agent("parallel", model(), tools=[weather, book], runtime_policy=policy)])
TASK = (
    '[[tools weather {"city": "Rome"}; weather {"city": "Oslo"}; weather {"city": "Bern"};'
    ' book {"city": "Rome"}]]'
)


async def main() -> None:
    async with serving(app) as client:
        handle = await client.session("parallel-1", agent="parallel").run(TASK)
        async for event in handle.events():
            if event.kind is EventKind.TOOL_STARTED:
                print("started  ", event.payload["index"], event.payload["call"]["name"])
            if event.kind is EventKind.TOOL_COMPLETED:
                print("completed", event.payload["index"])
        print((await handle).output)


if __name__ == "__main__":
    run(main)
