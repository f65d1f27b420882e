"""Reading a conversation in the form of the chat completions API."""

from typing import Any


def text_of(message: dict[str, Any]) -> str:
    """Return a message's text, whether its content is text, parts or missing."""
    content: str | list[dict[str, Any]] | None = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def last_user_index(messages: list[dict[str, Any]]) -> int:
    """Return where the last user message stands; -1 if there is none."""
    return max((n for n, message in enumerate(messages) if message["role"] == "user"), default=-1)


def last_user_text(messages: list[dict[str, Any]]) -> str:
    """Return what the user said last; empty if nothing."""
    index = last_user_index(messages)
    return text_of(messages[index]) if index >= 0 else ""
