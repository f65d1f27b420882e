"""Messages as EJAgent's journals hold them: OpenAI's shape, with usage and private keys."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from runlane.journal.transfer.breach import BreachError
from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    ModelToolCall,
    ModelUsage,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.records import ToolOutcome
from runlane.journal.wire.results import RunUsage
from runlane.journal.wire.tree import SummaryEntry

OWN_KEY: Final = "_ejagent_runlane"
"""What we know and EJAgent has no place for. It keeps keys of this prefix from its models."""

SUMMARY_KEY: Final = "_ejagent_summary"

INTEGER_MAX: Final = 2**63 - 1
"""The largest integer that our records hold; EJAgent knows no limit."""

Integer = Annotated[int, Meta(ge=-INTEGER_MAX, le=INTEGER_MAX)]
Natural = Annotated[int, Meta(ge=0, le=INTEGER_MAX)]
Positive = Annotated[int, Meta(ge=1, le=INTEGER_MAX)]

_OUTCOMES: Final = {
    "error": ToolOutcome.ERROR,
    "rejected": ToolOutcome.ERROR,
    "cancelled": ToolOutcome.CANCELLED,
}


class TokenCounts(Struct, frozen=True):
    """Tokens of a request or of a run.

    Raises:
        BreachError: The counts contradict each other.
    """

    input_tokens: Natural
    output_tokens: Natural
    total_tokens: Natural
    cache_read_tokens: Natural | None = None
    cache_write_tokens: Natural | None = None
    reasoning_tokens: Natural | None = None

    def __post_init__(self) -> None:
        if self.total_tokens != self.input_tokens + self.output_tokens:
            raise BreachError("total_tokens is not input_tokens plus output_tokens")
        cached = max(self.cache_read_tokens or 0, self.cache_write_tokens or 0)
        if cached > self.input_tokens or (self.reasoning_tokens or 0) > self.output_tokens:
            raise BreachError("a part of the tokens is more than all of them")


class _Part(Struct, frozen=True, tag_field="type", tag="text"):
    text: str


class _Function(Struct, frozen=True):
    name: str
    arguments: str | dict[str, Any] | None = None


class _Call(Struct, frozen=True):
    function: _Function
    id: str | None = None


class _ToolMark(Struct, frozen=True, omit_defaults=True):
    """Under `OWN_KEY` of a tool message: what the text does not say."""

    tool_name: str
    is_error: bool = False
    outcome: ToolOutcome | None = None


class FileMessage(Struct, frozen=True):
    """A message of a file. EJAgent takes any object; this is what a transcript here can hold."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    name: Any = None
    is_error: Any = None
    usage: Any = None
    mark: _ToolMark | None = msgspec.field(default=None, name=OWN_KEY)

    @property
    def text(self) -> str:
        """The content, parts joined; empty if there is none."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""

    @property
    def outcome(self) -> ToolOutcome:
        """What came of the call that this message answers."""
        if self.mark is not None and self.mark.outcome is not None:
            return self.mark.outcome
        return self._told_outcome()

    def to_message(self) -> ContextMessage:
        """Return the message as our records hold it."""
        match self.role:
            case "user":
                return UserMessage(self.text)
            case "assistant":
                content = None if self.content is None else self.text
                return AssistantMessage(content, tool_calls=self._calls())
            case "tool":
                return self.to_result()
            case _:
                return SystemMessage(self.text)

    def to_result(self, called: str = "") -> ToolMessage:
        """Return a tool message as our records hold it.

        Args:
            called: The tool whose call it answers, if that is known.
        """
        name = self.name if isinstance(self.name, str) else called
        failed = self._told_outcome() is not ToolOutcome.OK
        if isinstance(self.is_error, bool):
            failed = self.is_error
        if self.mark is not None:
            name, failed = self.mark.tool_name, self.mark.is_error
        return ToolMessage(
            tool_call_id=self.tool_call_id or "",
            tool_name=name,
            content=self.text,
            is_error=failed,
        )

    def to_usage(self) -> ModelUsage | None:
        """Return the tokens of the request; None where the file does not state them properly."""
        try:
            counts = msgspec.convert(self.usage, TokenCounts)
        except msgspec.ValidationError:
            return None
        return ModelUsage(
            input_tokens=counts.input_tokens,
            output_tokens=counts.output_tokens,
            cache_read_tokens=counts.cache_read_tokens,
            cache_write_tokens=counts.cache_write_tokens,
            reasoning_tokens=counts.reasoning_tokens,
        )

    def _calls(self) -> tuple[ModelToolCall, ...]:
        return tuple(
            ModelToolCall(call.id or "", call.function.name, _arguments_text(call.function))
            for call in self.tool_calls or ()
        )

    def _told_outcome(self) -> ToolOutcome:
        """Return what EJAgent's own texts of failed calls say: it has no other sign of them."""
        text = self.text
        if not text.startswith('{"status":'):
            return ToolOutcome.ERROR if self.is_error is True else ToolOutcome.OK
        try:
            told = msgspec.json.decode(text, type=_Failure)
        except (msgspec.MsgspecError, RecursionError):
            return ToolOutcome.OK
        return _OUTCOMES[told.status]


class _Failure(Struct, frozen=True):
    """What the model reads of a failed call; the text is JSON."""

    status: Literal["error", "rejected", "cancelled"]
    tool: str


def _arguments_text(function: _Function) -> str:
    arguments = function.arguments
    if isinstance(arguments, dict):
        return msgspec.json.encode(arguments).decode()
    return arguments or ""


def file_message(
    message: ContextMessage,
    *,
    usage: ModelUsage | None = None,
    outcome: ToolOutcome | None = None,
    summary: SummaryEntry | None = None,
) -> dict[str, Any]:
    """Return the message as EJAgent's journals hold it.

    Args:
        message: The message.
        usage: Of an assistant message: the tokens of its request.
        outcome: Of a tool message: what came of the call.
        summary: What the last compaction wrote; the message that holds it is marked.
    """
    match message:
        case SystemMessage(content):
            found: dict[str, Any] = {"role": "system", "content": content}
            if summary is not None and content.endswith(summary.content):
                found[SUMMARY_KEY] = msgspec.to_builtins(summary)
            return found
        case UserMessage(content):
            return {"role": "user", "content": content}
        case AssistantMessage(content, calls):
            found = {"role": "assistant", "content": content}
            if calls:
                found["tool_calls"] = [_file_call(call) for call in calls]
            if usage is not None:
                found["usage"] = file_counts(usage)
            return found
        case ToolMessage(call_id, name, content, failed):
            mark = _ToolMark(tool_name=name, is_error=failed, outcome=outcome)
            found = {"role": "tool", "tool_call_id": call_id, "content": content}
            return found | {OWN_KEY: msgspec.to_builtins(mark)}


def _file_call(call: ModelToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def file_counts(usage: ModelUsage | RunUsage) -> dict[str, int | None]:
    """Return counts that EJAgent accepts; what contradicts the others is left unknown."""
    read, written = max(usage.input_tokens, 0), max(usage.output_tokens, 0)
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "cache_read_tokens": _part(usage.cache_read_tokens, read),
        "cache_write_tokens": _part(usage.cache_write_tokens, read),
        "reasoning_tokens": _part(usage.reasoning_tokens, written),
    }


def _part(tokens: int | None, total: int) -> int | None:
    return tokens if tokens is not None and 0 <= tokens <= total else None
