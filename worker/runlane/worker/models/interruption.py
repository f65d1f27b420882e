"""How a stream ends when its run is told to stop."""

from collections.abc import AsyncGenerator
from typing import TypeVar

from runlane.worker.control.cancellation import CancellationToken

T = TypeVar("T")


async def until_cancelled(
    items: AsyncGenerator[T, None], cancellation: CancellationToken
) -> AsyncGenerator[T, None]:
    """Yield `items`, and close them at the end, however that comes.

    Raises:
        AgentCancelledError: `cancellation` came first, also while the next item was awaited.
    """
    try:
        while True:
            cancellation.raise_if_cancelled()  # before there is an awaitable to leave behind
            try:
                item = await cancellation.run(anext(items))
            except StopAsyncIteration:
                return
            yield item
    finally:
        if not getattr(items, "ag_running", False):  # else it ignores being stopped
            await items.aclose()
