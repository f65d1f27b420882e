"""The events of a run as they come: what the model thinks and says, and what its tools do."""

from examples.local import model, run, serving
from runlane.producer import EventKind
from runlane.worker import Agent, App, ToolEffect, tool


@tool(effect=ToolEffect.READ_ONLY)
async def find(word: str) -> str:
    """Find a word."""
    return f"{word} is on page 7"


app = App([Agent("streaming", model(), tools=[find])])
TASK = (
    '[[tool find {"word": "lane"}]] [[think It is on page 7, I say so.]]'
    "[[pace 0.05]] [[say The word you look for stands on page 7 of the book.]]"
)


async def main() -> None:
    async with serving(app) as client:
        handle = await client.session("streaming-1", agent="streaming").run(TASK)
        said = ""
        async for event in handle.events():
            match event.kind:
                case EventKind.ASSISTANT_TEXT_DELTA:
                    said += event.payload["delta"]
                    print(f"text      {event.payload['delta']!r}")
                case EventKind.ASSISTANT_THINKING_DELTA:
                    print(f"thinking  {event.payload['delta']!r}")
                case EventKind.TOOL_STARTED:
                    print(f"calls     {event.payload['call']['name']}")
                case EventKind.TOOL_COMPLETED:
                    print(f"result    {event.payload['message']['content']}")
                case _:
                    print(f"          {event.kind}")
        print("all of it:", said == (await handle).output)


if __name__ == "__main__":
    run(main)
