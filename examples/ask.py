"""A backend service asks for runs and follows them. Needs RUNLANE_REDIS_URL and a worker."""

import asyncio

from runlane.producer import Client, EventKind

TASK = 'Where is my order A-1? [[tool find_order {"order_id": "A-1"}]] [[delay 0.5]]'


async def main() -> None:
    async with await Client.connect() as client:
        session = client.session("ask-1", agent="support")
        first = await session.run(TASK)
        second = await session.follow_up("Thank you!")
        async for event in first.events():
            if event.kind is EventKind.ASSISTANT_TEXT_DELTA:
                print(event.payload["delta"])
            elif event.committed:
                print(f"{event.revision:4} {event.kind}")
        print((await first).output)
        print((await second.result(timeout=30)).output)


if __name__ == "__main__":
    asyncio.run(main())
