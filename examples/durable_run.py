"""A worker goes away in the middle of a run; the next one carries on from the last record.

Here it stops politely, at a turn boundary. One that is killed loses no more than the call that it
was at: `runlane demo` shows that.
"""

import asyncio

from examples.local import model, run, server, serving
from runlane.producer import Client
from runlane.worker import Agent, App, ToolEffect, tool

working = asyncio.Event()
stopping = asyncio.Event()
done: list[int] = []
STOP_AT = 2


@tool(effect=ToolEffect.SIDE_EFFECTING)
async def work(step: int) -> str:
    """Do one step."""
    if step == STOP_AT:  # the first worker is at it when it is told to stop
        working.set()
        await stopping.wait()
    done.append(step)
    return f"step {step} is done"


app = App([Agent("durable", model(), tools=[work])])
TASK = " ".join(f'[[tool work {{"step": {step}}}]]' for step in (1, 2, 3))


async def main() -> None:
    with server():
        async with serving(app) as client:
            handle = await client.session("durable-1", agent="durable").run(TASK)
            await working.wait()
            stopping.set()
        async with serving(app) as client:
            handle = await client.run_handle(handle.run_id)
            result = await handle
            print(f"steps {done}, attempt {(await handle.status()).attempt}: {result.output}")
            await show(client)


async def show(client: Client) -> None:
    async for record in client.session("durable-1").records():
        print(f"{record.revision:3} {type(record.body).__name__}")


if __name__ == "__main__":
    run(main)
