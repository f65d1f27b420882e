"""The built-in scripts, by name."""

from types import MappingProxyType
from typing import Final

from runlane.worker.testing.conversation import last_user_text
from runlane.worker.testing.directives import directives
from runlane.worker.testing.script import ChatRequest, Reply, Script, TokenUsage

_INSTANT: Final = Reply(text="ok", usage=TokenUsage(prompt_tokens=8, completion_tokens=1))


def echo(request: ChatRequest) -> Reply:
    """Repeat what the user said last."""
    return Reply(text=f"echo: {last_user_text(request.messages)}")


def instant(_: ChatRequest) -> Reply:
    """Say `ok` in one chunk, at once: for measuring everything but the model."""
    return _INSTANT


SCRIPTS: Final[MappingProxyType[str, Script]] = MappingProxyType(
    {"directives": directives, "echo": echo, "instant": instant}
)
