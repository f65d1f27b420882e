"""A model that answers from a list, by how far the run is."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from runlane.journal.wire.messages import AssistantMessage, ModelToolCall, ModelUsage, UserMessage
from runlane.worker import (
    CancellationToken,
    ModelAdapter,
    ModelContext,
    ModelProviderError,
    ModelResponseCompleted,
    ModelTextDelta,
    ModelThinkingDelta,
)
from runlane.worker.models import ModelStreamEvent

USAGE = ModelUsage(input_tokens=10, output_tokens=1)

Answer = AssistantMessage | Exception | None
"""A response, an error, or None: it streams a little and then nothing more."""


def call(name: str, **arguments: Any) -> ModelToolCall:
    return raw_call(name, msgspec.json.encode(arguments).decode())


def raw_call(name: str, arguments: str) -> ModelToolCall:
    return ModelToolCall(id=f"id-{name}", name=name, arguments=arguments)


def calls(*each: ModelToolCall) -> AssistantMessage:
    return AssistantMessage(tool_calls=each)


def text(content: str) -> AssistantMessage:
    return AssistantMessage(content)


class ScriptedModel(ModelAdapter):
    """Gives the answer whose number is the count of answers since the last task.

    What hooks and people say while the run goes on is no task: it begins with "steer".

    Attributes:
        contexts: What it was asked, oldest first.
        silent: Set once it has begun to say nothing more.
    """

    name = "scripted"

    def __init__(
        self,
        answers: Sequence[Answer],
        *,
        step: Callable[[str], None] = lambda _: None,
        usage: ModelUsage | None = USAGE,
    ) -> None:
        self.contexts: list[ModelContext] = []
        self.silent = asyncio.Event()
        self._answers = answers
        self._step = step
        self._usage = usage

    async def stream(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AsyncIterator[ModelStreamEvent]:
        self._step("a model request")
        self.contexts.append(context)
        answer = self._answers[_answers_so_far(context)]
        if isinstance(answer, Exception):
            yield ModelTextDelta("half an ans")
            raise answer
        yield ModelThinkingDelta("hm")
        if answer is None:
            yield ModelTextDelta("well ")
            self.silent.set()
            await asyncio.Event().wait()
        assert answer is not None
        for word in (answer.content or "").split(" "):
            yield ModelTextDelta(word)
        yield ModelResponseCompleted(answer, self._usage)


class UnfinishedModel(ModelAdapter):
    """A model whose stream ends without a response."""

    async def stream(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AsyncIterator[ModelStreamEvent]:
        yield ModelTextDelta("half an ans")


def _answers_so_far(context: ModelContext) -> int:
    count = 0
    for message in context.messages:
        if isinstance(message, UserMessage) and not message.content.startswith("steer"):
            count = 0
        elif isinstance(message, AssistantMessage):
            count += 1
    return count


def provider_error(**fields: Any) -> ModelProviderError:
    return ModelProviderError("the provider is unwilling", **fields)
