"""What a scripted model is asked, and what it answers."""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType


class ChatRequest(Struct, frozen=True):
    """One chat completions request, as the server received it.

    Attributes:
        model: The model that is asked for.
        messages: The conversation, oldest first, in the API's own form.
        tools: The tools on offer, in the API's own form.
        headers: HTTP headers; names in lower case.
    """

    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    headers: dict[str, str]


class ToolCall(Struct, frozen=True):
    """One tool call of a reply; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str = "{}"


class TokenUsage(Struct, frozen=True):
    """Tokens that a reply claims to have cost."""

    prompt_tokens: int
    completion_tokens: int


class HttpFault(Struct, frozen=True):
    """An answer with an HTTP status of 400 or more.

    Attributes:
        status: HTTP status.
        body: JSON body; an empty one becomes the API's usual error object.
        headers: Further headers, such as `retry-after`.
    """

    status: int
    body: dict[str, Any] = {}
    headers: dict[str, str] = {}


StreamFault = Literal["reset", "truncate", "error", "hang"]
"""How a reply breaks off halfway.

`reset` cuts the connection; `truncate` ends the stream without finish reason; `error` sends an
error object inside the stream. `hang` sends nothing at all and keeps the connection open.
"""


class Reply(Struct, frozen=True, kw_only=True):
    """What the model answers.

    Attributes:
        text: The answer; streamed word by word.
        tool_calls: Tool calls; streamed in fragments.
        thinking: Reasoning before the answer.
        usage: Token counts; unset estimates them from the request, None reports none.
        delay_s: Seconds before the first byte.
        chunk_delay_s: Seconds between the chunks of a stream.
        fault: What goes wrong; None for a good answer.
    """

    text: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: str | None = None
    usage: TokenUsage | UnsetType | None = UNSET
    delay_s: float = 0
    chunk_delay_s: float = 0
    fault: HttpFault | StreamFault | None = None


Script = Callable[[ChatRequest], Reply]
"""Decides from the request alone, so that workers, retries and restarts get the same answer.

A script that cannot read its request raises ValueError: the server answers 400 with its text.
"""
