"""What is sent: a context as a chat completions request."""

from typing import Any

from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    ModelToolCall,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from runlane.worker.models.config import ModelConfig
from runlane.worker.models.protocol import ModelContext, ToolSchema


def request_body(config: ModelConfig, context: ModelContext) -> dict[str, Any]:
    """Return the request that asks for a streamed response to `context`."""
    body: dict[str, Any] = {
        "model": config.model,
        "messages": [_message(message) for message in context.messages],
        "temperature": config.temperature,
        "stream": True,
    }
    if context.tools:
        body["tools"] = [_tool(tool) for tool in context.tools]
    if config.include_usage:
        body["stream_options"] = {"include_usage": True}
    return body


def _message(message: ContextMessage) -> dict[str, Any]:
    match message:
        case SystemMessage(content=content):
            return {"role": "system", "content": content}
        case UserMessage(content=content):
            return {"role": "user", "content": content}
        case ToolMessage(tool_call_id=call_id, content=content):
            # a result is text in this format; the content says which images and files are left out
            return {"role": "tool", "tool_call_id": call_id, "content": content}
        case AssistantMessage(content=content, tool_calls=()):
            return {"role": "assistant", "content": content or ""}
        case AssistantMessage(content=content, tool_calls=calls):
            return {
                "role": "assistant",
                "content": content or None,
                "tool_calls": [_tool_call(call) for call in calls],
            }


def _tool_call(call: ModelToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments or "{}"}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: ToolSchema) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name, "parameters": tool.parameters}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}
