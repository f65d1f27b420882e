"""What several tests of the models need."""

import asyncio
import email.utils
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import Struct

from runlane.journal.wire.messages import UserMessage
from runlane.worker.control import CancellationToken
from runlane.worker.models import (
    ModelAdapter,
    ModelConfig,
    ModelContext,
    ModelResponseCompleted,
    ModelStreamEvent,
    OpenAIModelAdapter,
)
from runlane.worker.testing.http11 import head, take_request

KEY = "sk-very-secret-0123456789"
QUIRKS = Path(__file__).parents[1] / "data" / "quirks"


@asynccontextmanager
async def adapter_at(url: str, **config: Any) -> AsyncGenerator[OpenAIModelAdapter, None]:
    adapter = OpenAIModelAdapter(ModelConfig(model="m", api_key=KEY, base_url=url, **config))
    await adapter.startup()
    try:
        yield adapter
    finally:
        await adapter.shutdown()


def user(text: str) -> ModelContext:
    return ModelContext((UserMessage(text),))


async def events_of(
    adapter: ModelAdapter,
    context: ModelContext | None = None,
    cancellation: CancellationToken | None = None,
) -> list[ModelStreamEvent]:
    asked, token = context or user("hi"), cancellation or CancellationToken()
    return [event async for event in adapter.stream(asked, cancellation=token)]


async def response_of(
    adapter: ModelAdapter, context: ModelContext | None = None
) -> ModelResponseCompleted:
    last = (await events_of(adapter, context))[-1]
    assert isinstance(last, ModelResponseCompleted)
    return last


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait for what nothing announces."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


class Recording(Struct):
    """One recorded HTTP response; `label` and what follows only in tables."""

    status: int
    headers: dict[str, str]
    parts: list[str]
    label: str = ""
    context_overflow: bool = False


class Quirk(Struct):
    """One recorded oddity, with the outcome that is right."""

    id: str
    why: str
    responses: list[Recording]
    expect: dict[str, Any]


def quirk(number: str) -> Quirk:
    (path,) = QUIRKS.glob(f"{number}-*.json")
    return msgspec.json.decode(path.read_bytes(), type=Quirk)


def recorded(*payloads: Any, done: bool = True) -> Recording:
    """Return a stream of `payloads`; a text goes as it is, anything else as JSON."""
    texts = [text if isinstance(text, str) else json.dumps(text) for text in payloads]
    stream = "".join(f"data: {text}\n\n" for text in [*texts, *(["[DONE]"] if done else [])])
    return Recording(200, {"content-type": "text/event-stream"}, [stream])


def said(**choice: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": None, **choice}]}


class ReplayServer:
    """Answers each request with the next recording, byte for byte; the last one repeats."""

    def __init__(self, *responses: Recording) -> None:
        self._responses = list(responses)
        self.bodies: list[dict[str, Any]] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        buffer = bytearray()
        while (request := take_request(buffer)) is None:
            buffer += await reader.read(65536)
        self.bodies.append(json.loads(request.body))
        answer = self._responses[min(len(self.bodies), len(self._responses)) - 1]
        writer.write(head(answer.status, {**_dated(answer.headers), "connection": "close"}))
        for part in answer.parts:
            writer.write(part.encode())
            await writer.drain()
        writer.close()
        await writer.wait_closed()


def _dated(headers: dict[str, str]) -> dict[str, str]:
    soon = email.utils.formatdate(time.time() + 2, usegmt=True)
    return {name: value.replace("{{HTTP_DATE+2}}", soon) for name, value in headers.items()}
