"""Replies in the words of the chat completions API: as JSON, or as server-sent events."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET

from runlane.worker.testing.http11 import LAST_CHUNK, chunk, head, response
from runlane.worker.testing.script import ChatRequest, HttpFault, Reply, TokenUsage, ToolCall

_CHARS_PER_TOKEN: Final = 4
_STREAM_HEAD: Final = head(
    200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
)

encode: Final = msgspec.json.Encoder().encode


def parts_of(
    request: ChatRequest, reply: Reply, *, stream: bool, include_usage: bool
) -> list[bytes]:
    """Return the bytes of the HTTP response, in the pieces between which a slow reply pauses."""
    if isinstance(reply.fault, HttpFault):
        status = reply.fault.status
        body = reply.fault.body or {"error": error_object("scripted fault", None)}
        return [response(status, encode(body), reply.fault.headers)]
    if not stream:
        text = _completion(request, reply)
        whole = response(200, text[: len(text) // 2] if reply.fault == "truncate" else text)
        return [whole[:-1] if reply.fault == "reset" else whole]
    events = _stream_payloads(request, reply, include_usage=include_usage)
    frames = [chunk(b"data: %b\n\n" % event) for event in events]
    end = [] if reply.fault == "reset" else [LAST_CHUNK]
    return [_STREAM_HEAD, *frames, *end]


def _stream_payloads(request: ChatRequest, reply: Reply, *, include_usage: bool) -> list[bytes]:
    deltas = list(_deltas(reply))
    if reply.fault is None:
        chunks = [_chunk(request, {"delta": delta}) for delta in deltas]
        chunks.append(_chunk(request, {"delta": {}, "finish_reason": _finish_reason(reply)}))
        if include_usage and (usage := _usage(request, reply)):
            chunks.append(_chunk(request) | {"usage": usage})
        return [*map(encode, chunks), b"[DONE]"]
    half = deltas[: (len(deltas) + 1) // 2]
    chunks = [_chunk(request, {"delta": delta}) for delta in half]
    if reply.fault == "error":
        chunks.append({"error": error_object("scripted error", "server_error")})
    return [encode(part) for part in chunks]


def _completion(request: ChatRequest, reply: Reply) -> bytes:
    if reply.fault == "error":
        return encode({"error": error_object("scripted error", "server_error")})
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.tool_calls:
        message["tool_calls"] = [_tool_call(call) for call in reply.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
    body = _chunk(request) | {"object": "chat.completion", "choices": [choice]}
    if usage := _usage(request, reply):
        body["usage"] = usage
    return encode(body)


def error_object(message: str, code: str | None) -> dict[str, Any]:
    """Return what the API puts under `error`."""
    return {"message": message, "type": "scripted", "code": code}


def _chunk(request: ChatRequest, *choices: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": request.model,
        "choices": [{"index": 0, "finish_reason": None} | choice for choice in choices],
    }


def _deltas(reply: Reply) -> Iterator[dict[str, Any]]:
    for piece in _words(reply.thinking):
        yield {"reasoning_content": piece}
    for piece in _words(reply.text):
        yield {"content": piece}
    for index, call in enumerate(reply.tool_calls):
        whole = _tool_call(call)
        half = len(call.arguments) // 2
        opening = whole | {"index": index, "function": whole["function"] | {"arguments": ""}}
        yield {"tool_calls": [opening]}
        for piece in (call.arguments[:half], call.arguments[half:]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _words(text: str | None) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text or "")


def _tool_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _finish_reason(reply: Reply) -> str:
    return "tool_calls" if reply.tool_calls else "stop"


def _usage(request: ChatRequest, reply: Reply) -> dict[str, int] | None:
    usage = _estimate(request, reply) if reply.usage is UNSET else reply.usage
    if usage is None:
        return None
    counts: dict[str, int] = msgspec.to_builtins(usage)
    return counts | {"total_tokens": usage.prompt_tokens + usage.completion_tokens}


def _estimate(request: ChatRequest, reply: Reply) -> TokenUsage:
    return TokenUsage(
        prompt_tokens=1 + len(encode([request.messages, request.tools])) // _CHARS_PER_TOKEN,
        completion_tokens=1 + len(encode([reply.text, reply.tool_calls])) // _CHARS_PER_TOKEN,
    )
