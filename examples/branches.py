"""One conversation, tried in two ways; the better one goes on, and all of it goes into a file."""

import asyncio
import tempfile
import uuid
from pathlib import Path

from runlane.producer import Client


async def main() -> None:
    async with await Client.connect() as client:
        session = client.session(f"branches-{uuid.uuid4().hex[:8]}", agent="support")
        await (await session.run("Where is my order A-1?"))

        polite = await session.fork(name="polite")  # a lane of its own: both can run at once
        blunt = await session.fork(name="blunt")
        asked = [await polite.run("Thank you so much!"), await blunt.run("And now?")]
        for handle in asked:
            print(handle.branch_id, "answered:", (await handle).output)

        await polite.promote()  # main goes on from there; blunt stays as it is
        print("main says:", (await session.messages())[-1])
        retry = await session.prepare_retry(asked[1].run_id)  # as of before that run
        print("to be asked again:", retry.task, "on", retry.branch_id)

        file = Path(tempfile.mkdtemp()) / "session.jsonl"
        print("exported:", await session.export_jsonl(file))
        copy = client.session(f"{session.session_id}-copy")
        print("imported:", await copy.import_jsonl(file))
        assert await copy.messages() == await session.messages()


if __name__ == "__main__":
    asyncio.run(main())
