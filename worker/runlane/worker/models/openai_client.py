"""The official OpenAI SDK: the one module that imports it, which costs 2 s of CPU time."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Any, Final

import httpx2
import openai

from runlane.worker.models.config import ModelConfig
from runlane.worker.models.fault_rules import fault_of_answer
from runlane.worker.models.faults import ModelErrorKind, ModelProviderError
from runlane.worker.models.sse import SseDecoder

_DONE: Final = b"[DONE]"
_DRAIN_S: Final = 0.1


class OpenAIClient:
    """A pool of connections to one provider, for all requests of a process.

    It never retries: whoever runs the loop decides about that, once. Failures carry neither the
    SDK's exceptions nor their texts along, since those quote requests and answers.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._where = config.label
        self._sdk = openai.AsyncOpenAI(
            api_key=config.api_key,
            base_url=config.base_url,
            timeout=config.timeout_s,
            max_retries=0,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._sdk.close()

    async def stream(self, path: str, body: dict[str, Any]) -> AsyncGenerator[list[bytes], None]:
        """Post `body`; yield the JSON texts of the answer, in the batches that the network brings.

        A server that answers with one JSON text instead of a stream gives one batch of one.
        Closing the iterator closes the HTTP response.

        Raises:
            ModelProviderError: The provider refused, fell silent or cut the stream.
        """
        try:
            answer = await self._sdk.post(
                path,
                body=body,
                cast_to=object,
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
            # The SDK's own reader fails at comments that follow an event id, and builds a
            # pydantic model of every chunk.
            try:
                async with aclosing(_batches(answer.response)) as batches:
                    async for batch in batches:
                        yield batch
            finally:
                await answer.close()
        except openai.APIStatusError as error:
            fault = fault_of_answer(
                self._where,
                error.body,
                status=error.status_code,
                headers=error.response.headers,
            )
        except (openai.APITimeoutError, httpx2.TimeoutException):
            fault = ModelProviderError(
                f"{self._where} did not answer in time", kind=ModelErrorKind.TIMEOUT
            )
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            fault = ModelProviderError(
                f"{self._where}: the connection failed: {_reason(error)}", code="connection"
            )
        else:
            return
        raise fault


async def _batches(response: httpx2.Response) -> AsyncGenerator[list[bytes], None]:
    if response.headers.get("content-type", "").startswith("application/json"):
        yield [await response.aread()]
        return
    decoder = SseDecoder()
    chunks = response.aiter_bytes()
    async for chunk in chunks:
        batch = decoder.feed(chunk)
        if _DONE in batch:
            yield batch[: batch.index(_DONE)]
            await _drain(chunks)
            return
        yield batch
    yield decoder.finish()


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read a finished stream to its end, so that its connection can be used again."""
    with suppress(TimeoutError, httpx2.HTTPError):  # costs the connection, not the answer
        async with asyncio.timeout(_DRAIN_S):
            async for _ in chunks:
                pass


def _reason(error: Exception) -> str:
    """Return the cause; only that of a failed connect in the words of the system."""
    cause = error.__cause__ or error
    return str(cause) if isinstance(cause, httpx2.ConnectError) else type(cause).__name__
