"""What one can say to a session while it works: steer, follow up, abort, continue."""

import asyncio

from examples.local import model, run, serving
from runlane.worker import Agent, App, ToolEffect, tool

working = asyncio.Event()
go_on = asyncio.Event()


@tool(effect=ToolEffect.READ_ONLY)
async def search() -> str:
    """Search for a while; it is cancelled if the run is aborted."""
    working.set()
    await go_on.wait()
    return "found"


app = App([Agent("controlled", model(), tools=[search])])


async def main() -> None:
    async with serving(app) as client:
        session = client.session("controlled-1", agent="controlled")

        handle = await session.run("[[tool search]]")
        await working.wait()
        receipt = await session.steer("Only results of this year, please.")
        later = await session.follow_up("Thank you!")  # another run, after this one
        print("steering:", receipt.status)
        go_on.set()
        print("steered:", (await handle).output)
        print("follow-up:", (await later).output)

        continued = await session.continue_run()  # another run, without a new message
        print("continued:", (await continued).output)

        working.clear()
        go_on.clear()
        handle = await session.run("[[tool search]]")
        await working.wait()
        await session.abort("that takes too long")
        result = await handle
        print(f"aborted: {result.status}, {result.stop_reason}, {result.error}")


if __name__ == "__main__":
    run(main)
