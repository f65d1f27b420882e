"""A support agent: what `runlane dev examples.support:app` serves.

`runlane worker examples.support:app` needs MODEL_URL, MODEL_API_KEY and CHAT_MODEL too.
"""

from runlane.worker import (
    Agent,
    App,
    ModelConfig,
    OpenAIModelAdapter,
    ToolCallContext,
    ToolEffect,
    tool,
)

ORDERS = {"A-1": "shipped on Monday", "A-2": "waiting for payment"}
REFUNDS: set[str] = set()


@tool(effect=ToolEffect.READ_ONLY)
async def find_order(order_id: str) -> str:
    """Look up where an order is."""
    return ORDERS.get(order_id, "no such order")


@tool(effect=ToolEffect.IDEMPOTENT)
async def tag_session(label: str, context: ToolCallContext) -> str:
    """Put a label on this conversation; doing it twice changes nothing."""
    return f"session {context.session_id} is labelled {label}"


@tool(effect=ToolEffect.SIDE_EFFECTING)
async def refund(order_id: str, context: ToolCallContext) -> str:
    """Pay an order back. Never repeated after a crash: the model is told if nobody can know."""
    REFUNDS.add(context.operation_key)  # what to send along as idempotency key
    return f"order {order_id} is paid back"


@refund.reconcile
async def refund_happened(context: ToolCallContext, order_id: str) -> str | None:
    """Say what became of a refund that a crash interrupted; None if nobody can know."""
    return f"order {order_id} is paid back" if context.operation_key in REFUNDS else None


app = App(
    [
        Agent(
            "support",
            OpenAIModelAdapter(ModelConfig.from_env()),
            system_prompt="You help customers of a small shop.",
            tools=[find_order, tag_session, refund],
        )
    ]
)
