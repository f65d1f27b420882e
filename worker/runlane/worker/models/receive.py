"""One whole response of a model: heard while it comes, kept when it is complete."""

from collections.abc import AsyncGenerator, Callable

from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.models.faults import ModelProviderError
from runlane.worker.models.protocol import (
    ModelAdapter,
    ModelContext,
    ModelResponseCompleted,
    ModelTextDelta,
)


async def receive(
    model: ModelAdapter,
    context: ModelContext,
    *,
    cancellation: CancellationToken,
    hear_text: Callable[[str], None],
    hear_thinking: Callable[[str], None],
) -> ModelResponseCompleted:
    """Ask a model, and return its response once all of it is there.

    Args:
        model: Who is asked.
        context: The request.
        cancellation: Ends the request.
        hear_text: Called with each piece of the answer's text.
        hear_thinking: Called with each piece of the model's reasoning.

    Raises:
        ModelProviderError: There is no complete response; what was heard is void.
        AgentCancelledError: `cancellation` came first.
        Exception: Whatever else the model raises.
    """
    events = model.stream(context, cancellation=cancellation)
    try:
        async for event in events:
            if isinstance(event, ModelResponseCompleted):
                return event
            if isinstance(event, ModelTextDelta):
                hear_text(event.delta)
            else:
                hear_thinking(event.delta)
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()
    raise ModelProviderError(f"model {model.name}: the stream held no complete response")
