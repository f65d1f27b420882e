"""Two ways to make a tool: a typed function, and a handler whose tools share a connection."""

from typing import Annotated, Any

from msgspec import Meta

from examples.local import model, run, serving
from runlane.worker import (
    Agent,
    App,
    MethodToolHandler,
    StepOutcome,
    ToolDefinition,
    ToolEffect,
    tool,
)


@tool(effect=ToolEffect.READ_ONLY, timeout_s=5)
async def convert(celsius: Annotated[float, Meta(ge=-273.15)]) -> str:
    """Convert a temperature to Fahrenheit.

    Args:
        celsius: The temperature.
    """
    return f"{celsius * 9 / 5 + 32:.1f} F"


class Stations(MethodToolHandler):
    """Answers `temperature` with its method `do_temperature`."""

    tools = (
        ToolDefinition(
            "temperature",
            "Read a weather station.",
            {"type": "object", "properties": {"city": {"type": "string"}}},
            ToolEffect.READ_ONLY,
        ),
    )

    async def startup(self) -> None:
        """Open what all calls share; once for each worker."""
        self._readings = {"Oslo": -4.0}

    async def do_temperature(self, arguments: dict[str, Any]) -> StepOutcome:
        """Look it up; what is raised here, the model reads as an error."""
        return StepOutcome({"celsius": self._readings[arguments["city"]]})


app = App([Agent("weather", model(), tools=[convert], handlers=[Stations()])])
TASK = 'How cold is it? [[tool temperature {"city": "Oslo"}]] [[tool convert {"celsius": -4}]]'


async def main() -> None:
    async with serving(app) as client:
        print((await (await client.session("weather-1", agent="weather").run(TASK))).output)


if __name__ == "__main__":
    run(main)
