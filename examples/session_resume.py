"""Whoever knows a session's id goes on with it, and hears what was missed, from any process."""

from examples.local import model, run, serving
from runlane.producer import Client
from runlane.worker import Agent, App

app = App([Agent("resumed", model())])


async def first_process(client: Client) -> str:
    """Ask once; return what it takes to go on: the cursor of the last event that was heard."""
    handle = await client.session("resumed-1", agent="resumed").run("Remember the number 7.")
    cursors = [event.cursor async for event in handle.events() if event.cursor]
    return cursors[-1]


async def second_process(cursor: str) -> None:
    """Go on: the session knows its agent, and its events come from the cursor on."""
    async with await Client.connect() as client:
        session = client.session("resumed-1")
        print("before:", [message.content for message in await session.messages()])
        handle = await session.run("Which number?")
        async for event in session.events(after=cursor):
            print(f"{event.revision if event.committed else '':>3} {event.kind}")
            if event.terminal:
                break
        print("then:", (await handle).output)


async def main() -> None:
    async with serving(app) as client:
        cursor = await first_process(client)
        await second_process(cursor)


if __name__ == "__main__":
    run(main)
