"""The agent that the demo serves: one tool of each effect, and a model from the environment.

`runlane dev runlane.worker.demo.agents:app` serves it too.
"""

import asyncio
import os
from typing import Final

from runlane.worker.app import Agent, App
from runlane.worker.demo.ledger import Entry, Ledger, Mark
from runlane.worker.demo.tasks import AGENT
from runlane.worker.models import ModelConfig, OpenAIModelAdapter
from runlane.worker.tools import ToolCallContext, ToolEffect, tool

REFUND_S: Final = 0.8
"""How long a refund takes: time enough to be killed in its middle."""

_ledger: Final = Ledger.from_env()


@tool(effect=ToolEffect.READ_ONLY)
async def find_order(order_id: str) -> dict[str, str]:
    """Look up an order."""
    await asyncio.sleep(0.1)
    return {"order_id": order_id, "status": "delivered" if order_id.startswith("A") else "lost"}


@tool(effect=ToolEffect.IDEMPOTENT)
async def open_return(order_id: str) -> str:
    """Open a return for an order; asking again gives the same return."""
    await asyncio.sleep(0.1)
    return f"return R-{order_id} is open"


@tool(effect=ToolEffect.SIDE_EFFECTING)
async def refund(order_id: str, cents: int, context: ToolCallContext) -> str:
    """Pay so many cents back for an order."""
    _write(Mark.STARTED, context)
    await asyncio.sleep(REFUND_S)
    _write(Mark.DONE, context)
    return f"{cents} cents are paid back for order {order_id}"


def _write(mark: Mark, context: ToolCallContext) -> None:
    _ledger.append(Entry(mark, context.operation_key, context.attempt, os.getpid()))


app = App(
    [
        Agent(
            AGENT,
            OpenAIModelAdapter(ModelConfig.from_env()),
            system_prompt=(
                "You serve the customers of a shop. Do what they ask with your tools, one call "
                "after the other, then answer in one sentence. Never repeat a refund whose "
                "outcome is unknown."
            ),
            tools=[find_order, open_return, refund],
        )
    ]
)
