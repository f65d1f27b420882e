"""The adapter: one request, one stream of events."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from runlane.worker.models.adapters.openai_chat.request import request_body
from runlane.worker.models.adapters.openai_chat.response import ResponseAssembly
from runlane.worker.models.interruption import until_cancelled
from runlane.worker.models.protocol import ModelAdapter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from runlane.worker.control.cancellation import CancellationToken
    from runlane.worker.models.config import ModelConfig
    from runlane.worker.models.openai_client import OpenAIClient
    from runlane.worker.models.protocol import ModelContext, ModelStreamEvent


class OpenAIModelAdapter(ModelAdapter):
    """A model behind a chat completions API; always asks for a stream."""

    def __init__(self, config: ModelConfig) -> None:
        self.name = config.model
        self._config = config
        self._client: OpenAIClient | None = None

    async def startup(self) -> None:
        """Load the SDK and prepare its connections; a second call does nothing."""
        from runlane.worker.models.openai_client import OpenAIClient  # noqa: PLC0415 (slow)

        self._client = self._client or OpenAIClient(self._config)

    async def shutdown(self) -> None:
        """Close the connections."""
        if self._client:
            await self._client.close()
        self._client = None

    async def stream(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AsyncIterator[ModelStreamEvent]:
        """Yield the response as it comes; see `ModelAdapter.stream`.

        Raises:
            ModelProviderError: There is no complete response; deltas that came are void.
            AgentCancelledError: `cancellation` came first.
        """
        assert self._client is not None, "startup() comes first"
        response = ResponseAssembly(self._config.label)
        batches = self._client.stream("/chat/completions", request_body(self._config, context))
        async with aclosing(until_cancelled(batches, cancellation)) as batches:
            async for batch in batches:
                for payload in batch:
                    for event in response.take(payload):
                        yield event
        yield response.completed()
