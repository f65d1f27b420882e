"""The transcript: what a model has read and said, free of any provider's format."""

from msgspec import Struct

from runlane.journal.wire.content import ContentBlock


class ModelToolCall(Struct, frozen=True, omit_defaults=True):
    """One tool call as the model wrote it.

    Attributes:
        id: The provider's call id: data only, since providers repeat and omit it.
        name: The tool that is asked for; it may not exist.
        arguments: Raw JSON text; it may not parse.
    """

    id: str
    name: str
    arguments: str = ""


class ModelUsage(Struct, frozen=True, omit_defaults=True):
    """Tokens of one model request, as the provider reported them.

    Attributes:
        input_tokens: All prompt tokens, cached ones included.
        output_tokens: All generated tokens, reasoning included.
        cache_read_tokens: The part of `input_tokens` that came from a cache; None if unknown.
        cache_write_tokens: The part of `input_tokens` written to a cache; None if unknown.
        reasoning_tokens: The part of `output_tokens` spent on reasoning; None if unknown.
    """

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def total_tokens(self) -> int:
        """Input plus output."""
        return self.input_tokens + self.output_tokens


class SystemMessage(Struct, frozen=True, tag_field="role", tag="system"):
    """An instruction of the application; never journaled, rebuilt from the agent each time."""

    content: str


class UserMessage(Struct, frozen=True, tag_field="role", tag="user"):
    """What the user said: the task of a run, a follow-up or applied steering."""

    content: str


class AssistantMessage(Struct, frozen=True, omit_defaults=True, tag_field="role", tag="assistant"):
    """One complete model response."""

    content: str | None = None
    tool_calls: tuple[ModelToolCall, ...] = ()


class ToolMessage(Struct, frozen=True, omit_defaults=True, tag_field="role", tag="tool"):
    """The result of one tool call as the model will read it.

    Attributes:
        tool_call_id: The id of the `ModelToolCall` that it answers.
        tool_name: The tool that ran, or that was asked for.
        content: Text, or JSON text of a structured result; it says where each block belongs.
        is_error: Whether the call failed, was refused or has an unknown outcome.
        blocks: What of the result is no text, in order.
    """

    tool_call_id: str
    tool_name: str
    content: str
    is_error: bool = False
    blocks: tuple[ContentBlock, ...] = ()


Message = UserMessage | AssistantMessage | ToolMessage
"""What a journal keeps."""

ContextMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage
"""What a model request carries."""
