"""Arguments that break a tool's JSON Schema go back to the model, with what is wrong with them."""

from typing import Any

from examples.local import model, run, serving
from runlane.worker import (
    Agent,
    App,
    MethodToolHandler,
    StepOutcome,
    ToolSchemaValidationMiddleware,
)


class Shop(MethodToolHandler):
    """Its tools are described in JSON, as those of other systems are; `@tool` checks by itself."""

    tools = (
        {
            "type": "function",
            "function": {
                "name": "order",
                "description": "Order something.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "article": {"type": "string", "pattern": "^A-[0-9]+$"},
                        "pieces": {"type": "integer", "minimum": 1, "maximum": 10},
                    },
                    "required": ["article", "pieces"],
                    "additionalProperties": False,
                },
            },
        },
    )

    async def do_order(self, arguments: dict[str, Any]) -> StepOutcome:
        """Order it; only arguments that fit come here."""
        return StepOutcome(f"{arguments['pieces']} of {arguments['article']} are ordered")


app = App(
    [Agent("shop", model(), handlers=[Shop()], middlewares=[ToolSchemaValidationMiddleware()])]
)
TASK = (
    '[[tool order {"article": "B-1", "pieces": 99}]] [[tool order {"article": "A-1", "pieces": 2}]]'
)


async def main() -> None:
    async with serving(app) as client:
        session = client.session("shop-1", agent="shop")
        await (await session.run(TASK))
        for message in await session.messages():
            print(type(message).__name__, message.content)


if __name__ == "__main__":
    run(main)
