"""Reads tada-core's sessions: the JSON of a `SessionState`, of 0.7 and 0.8."""

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from runlane.journal.errors import JournalFormatError
from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.transfer.breach import BreachError
from runlane.journal.transfer.ejagent_documents import canonical
from runlane.journal.transfer.imported import ImportedJournal, ImportedRecord, ImportReport
from runlane.journal.transfer.transcript import Transcript
from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    ModelToolCall,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.tree import HistoryImported

TADA_FORMAT: Final = "tada-session"
"""Names these documents in `HistoryImported`."""

_SILENT: Final = frozenset({"thinking", "redacted_thinking"})
"""Blocks that no later request needs."""


class _Block(Struct, frozen=True):
    """A part of a message; which fields count depends on the type."""

    type: str
    text: str | None = None
    tool_use_id: str | None = None
    tool_name: str | None = None
    tool_input: str | None = None
    tool_result: str | None = None
    is_error: bool = False
    mime_type: str | None = None
    name: str | None = None
    extra: dict[str, Any] = {}


class _Message(Struct, frozen=True):
    role: Literal["user", "assistant", "tool"]
    content: list[_Block] = []


class _State(Struct, frozen=True):
    messages: list[_Message]
    usage: dict[str, Any] = {}
    metadata: dict[str, Any] = {}


def read_tada(data: bytes, *, session_id: str) -> ImportedJournal:
    """Read a session of tada-core, as `SessionState.model_dump_json()` gives it.

    Its text, tool calls and results become one transcript; each result stands behind its call, and
    a call without one gets one that says so. Thinking is left out. Images and files are named in
    the text; the whole of them stays in the document. System prompts are not part of the state.

    Args:
        data: The JSON.
        session_id: The session that it is to be.

    Raises:
        JournalFormatError: It is no such state; the reason names the JSON path.
    """
    try:
        state = msgspec.json.decode(data, type=_State)
        reading = _Reading()
        transcript = Transcript(reading.messages(state))
        document = canonical(msgspec.json.decode(data))
    except (BreachError, msgspec.MsgspecError, RecursionError) as error:
        raise JournalFormatError(str(error)) from error
    history = HistoryImported(
        format=TADA_FORMAT, document=document, messages=tuple(transcript.messages())
    )
    return ImportedJournal(
        session_id=session_id,
        agent_id=None,
        entries=(ImportedRecord(MAIN_BRANCH, None, history),),
        report=ImportReport(lines=1, left_out=reading.left_out + transcript.dropped),
    )


class _Reading:
    """The messages of a state.

    Attributes:
        left_out: Images, files and other blocks that are only named.
    """

    def __init__(self) -> None:
        self.left_out = 0

    def messages(self, state: _State) -> Iterator[ContextMessage]:
        for number, message in enumerate(state.messages):
            path = f"$.messages[{number}]"
            if message.role == "assistant":
                yield self._response(message, path)
            else:
                yield from self._said(message, path)

    def _response(self, message: _Message, path: str) -> AssistantMessage:
        calls: list[ModelToolCall] = []
        texts: list[str] = []
        for number, block in enumerate(message.content):
            where = f"{path}.content[{number}]"
            if block.type == "tool_result":
                raise BreachError(f"an assistant message holds a tool result - at `{where}`")
            if block.type == "tool_use":
                name = _needed(block.tool_name, "tool_name", where)
                call_id = _needed(block.tool_use_id, "tool_use_id", where)
                calls.append(ModelToolCall(call_id, name, block.tool_input or "{}"))
            else:
                texts += self._text(block)
        return AssistantMessage("\n".join(texts) or None, tool_calls=tuple(calls))

    def _said(self, message: _Message, path: str) -> Iterator[ContextMessage]:
        texts: list[str] = []
        for number, block in enumerate(message.content):
            where = f"{path}.content[{number}]"
            if block.type == "tool_use":
                raise BreachError(f"a {message.role} message holds a tool call - at `{where}`")
            if block.type == "tool_result":
                yield ToolMessage(
                    tool_call_id=_needed(block.tool_use_id, "tool_use_id", where),
                    tool_name=block.tool_name or "",
                    content=self._result(block, where),
                    is_error=block.is_error,
                )
            else:
                texts += self._text(block)
        if texts:
            yield UserMessage("\n".join(texts))

    def _result(self, block: _Block, where: str) -> str:
        nested = block.extra.get("content_blocks")
        if not isinstance(nested, list):
            return block.tool_result or ""
        try:
            blocks = msgspec.convert(nested, list[_Block])
        except msgspec.ValidationError as error:
            raise BreachError(f"{error}, in `{where}.extra.content_blocks`") from error
        return "\n".join(text for inner in blocks for text in self._text(inner))

    def _text(self, block: _Block) -> list[str]:
        if block.type == "text":
            return [block.text] if block.text else []
        if block.type in _SILENT:
            return []
        self.left_out += 1
        named = " ".join(filter(None, (block.type, block.name, block.mime_type)))
        return [f"[{named}]"]


def _needed(value: str | None, what: str, where: str) -> str:
    if not value:
        raise BreachError(f"{what} is missing - at `{where}`")
    return value
