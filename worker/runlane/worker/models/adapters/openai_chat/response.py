"""What comes back: chunks of a chat completion as events and one message."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from runlane.journal.wire.messages import AssistantMessage, ModelUsage
from runlane.worker.models.fault_rules import fault_of_answer
from runlane.worker.models.faults import ModelProviderError
from runlane.worker.models.protocol import (
    ModelResponseCompleted,
    ModelStreamEvent,
    ModelTextDelta,
    ModelThinkingDelta,
)
from runlane.worker.models.tool_fragments import ToolCallAssembly, arguments_text, is_json


class _Function(Struct):
    name: str | None = None
    arguments: Any = None


class _ToolFragment(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_text: str | None = None
    tool_calls: list[_ToolFragment] | None = None


class _Choice(Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _CompletionDetails(Struct):
    reasoning_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class _Chunk(Struct):
    """A chunk of a stream, or the whole completion of a server that does not stream."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Chunk)


class ResponseAssembly:
    """One response while it arrives.

    Args:
        where: The model and its address, for messages of faults.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._text: list[str] = []
        self._tool_calls = ToolCallAssembly()
        self._finish_reason = ""
        self._usage: ModelUsage | None = None

    def take(self, payload: bytes) -> Iterator[ModelStreamEvent]:
        """Take one chunk; yield what it adds.

        Raises:
            ModelProviderError: The chunk is an error or no chunk at all.
        """
        try:
            chunk = _decoder.decode(payload)
        except (msgspec.DecodeError, RecursionError):
            raise self._fault("sent what is no chat completion", "malformed_response") from None
        if chunk.error:
            raise fault_of_answer(self._where, chunk.error)
        self._usage = _usage(chunk.usage) or self._usage
        for choice in (chunk.choices or ())[:1]:
            self._finish_reason = choice.finish_reason or self._finish_reason
            if delta := choice.delta or choice.message:
                self._take_tool_calls(delta.tool_calls or (), whole=delta is choice.message)
                yield from self._take_text(delta)

    def completed(self) -> ModelResponseCompleted:
        """Return the whole response.

        Raises:
            ModelProviderError: It is not whole, or the provider withholds it.
        """
        tool_calls = self._tool_calls.finished()
        if not self._finish_reason:
            raise self._fault("ended its stream before the response", "incomplete_response")
        if self._finish_reason in ("content_filter", "error"):
            raise self._fault("withheld the response", self._finish_reason)
        if not all(call.name for call in tool_calls):
            raise self._fault("called a tool without a name", "malformed_response")
        if self._finish_reason == "length" and not all(is_json(c.arguments) for c in tool_calls):
            raise self._fault("reached its output limit within a tool call", "length")
        message = AssistantMessage("".join(self._text) or None, tool_calls)
        return ModelResponseCompleted(message, self._usage)

    def _take_text(self, delta: _Delta) -> Iterator[ModelStreamEvent]:
        if thinking := delta.reasoning_content or delta.reasoning or delta.reasoning_text:
            yield ModelThinkingDelta(thinking)
        if text := delta.content or delta.refusal:
            self._text.append(text)
            yield ModelTextDelta(text)

    def _take_tool_calls(self, fragments: Sequence[_ToolFragment], *, whole: bool) -> None:
        for position, fragment in enumerate(fragments):
            function = fragment.function or _Function()
            self._tool_calls.add(
                index=position if whole else fragment.index,
                call_id=fragment.id or "",
                name=function.name or "",
                arguments=arguments_text(function.arguments),
            )

    def _fault(self, what: str, code: str) -> ModelProviderError:
        return ModelProviderError(f"{self._where} {what} ({code})", code=code)


def _usage(reported: _Usage | None) -> ModelUsage | None:
    if reported is None or reported.prompt_tokens is None or reported.completion_tokens is None:
        return None
    prompt = reported.prompt_tokens_details or _PromptDetails()
    completion = reported.completion_tokens_details or _CompletionDetails()
    return ModelUsage(
        input_tokens=reported.prompt_tokens,
        output_tokens=reported.completion_tokens,
        cache_read_tokens=prompt.cached_tokens,
        cache_write_tokens=prompt.cache_write_tokens,
        reasoning_tokens=completion.reasoning_tokens,
    )
