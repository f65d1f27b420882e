"""Sinks hear the events of the runs that their own worker executes: for metrics, logs, traces."""

from collections import Counter

from examples.local import model, run, serving
from runlane.worker import Agent, AgentEvent, App, CompositeAgentEventSink, ToolEffect, tool


class Count:
    """One object hears all runs of its agent, side by side."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()

    async def emit(self, event: AgentEvent) -> None:
        """Count an event."""
        self.kinds[event.kind] += 1


class Print:
    """Prints what the journal keeps; the rest is live only."""

    async def emit(self, event: AgentEvent) -> None:
        """Print an event."""
        if event.committed:
            print(f"{event.revision:3} {event.kind}")


@tool(effect=ToolEffect.READ_ONLY)
async def look() -> str:
    """Look around."""
    return "nothing"


count = Count()
sink = CompositeAgentEventSink([count, Print()])
app = App([Agent("observed", model(), tools=[look], event_sink=sink)])


async def main() -> None:
    async with serving(app) as client:
        await (await client.session("observed-1", agent="observed").run("[[tool look]]"))
    heard = {str(kind): number for kind, number in count.kinds.items()}
    print("heard:", heard)  # a run waits for no sink: once the worker has stopped


if __name__ == "__main__":
    run(main)
