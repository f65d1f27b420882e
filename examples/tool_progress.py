"""A long tool call says how far it is. Whoever listens hears it; the journal does not keep it."""

from examples.local import model, run, serving
from runlane.producer import EventKind
from runlane.worker import Agent, App, ToolCallContext, ToolEffect, tool


@tool(effect=ToolEffect.IDEMPOTENT)
async def index(pages: int, context: ToolCallContext) -> str:
    """Index a book."""
    for page in range(1, pages + 1):
        context.cancellation.raise_if_cancelled()
        await context.progress.report(f"page {page} of {pages}", {"done": page / pages})
    return f"{pages} pages are indexed"


app = App([Agent("progressing", model(), tools=[index])])


async def main() -> None:
    async with serving(app) as client:
        session = client.session("progressing-1", agent="progressing")
        handle = await session.run('[[tool index {"pages": 3}]]')
        async for event in handle.events():
            if event.kind is EventKind.TOOL_PROGRESSED:
                update = event.payload["update"]
                print(f"{update['data']['done']:4.0%} {update['message']}")
        print((await handle).output)


if __name__ == "__main__":
    run(main)
