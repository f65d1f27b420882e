"""What a session of tada-core becomes."""

import json
from typing import Any

import pytest

from runlane.journal.errors import JournalFormatError
from runlane.journal.transcript import ABANDONED_CALL
from runlane.journal.transfer.imported import ImportedJournal
from runlane.journal.transfer.tada import read_tada
from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    ModelToolCall,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.tree import HistoryImported

Json = dict[str, Any]

BLOCK: Json = {
    **dict.fromkeys(("text", "thinking", "signature", "tool_use_id", "tool_name", "tool_input")),
    **dict.fromkeys(("tool_result", "source", "mime_type", "data", "url", "name")),
    "is_error": False,
    "extra": {},
}
"""A content block as tada-core dumps it: every field, most of them null."""


def block(kind: str, **fields: Any) -> Json:
    return BLOCK | {"type": kind} | fields


def said(role: str, *blocks: Json) -> Json:
    about = dict.fromkeys(("id", "provider", "api", "model", "stop_reason"))
    return about | {"role": role, "content": list(blocks)}


def calls(call_id: str, **fields: Any) -> Json:
    use: Json = {"tool_use_id": call_id, "tool_name": "look", "tool_input": '{"q": 1}'}
    return block("tool_use", **(use | fields))


def tells(call_id: str, text: str | None = "seen", **fields: Any) -> Json:
    result: Json = {"tool_use_id": call_id, "tool_name": "look", "tool_result": text}
    return block("tool_result", **(result | fields))


def read(*messages: Json) -> ImportedJournal:
    usage = {"input_tokens": 3, "output_tokens": 4, "cache_read_tokens": 0}
    state = {"messages": list(messages), "usage": usage, "metadata": {"ü": [1.5, None]}}
    return read_tada(json.dumps(state).encode(), session_id="s")


def history(journal: ImportedJournal) -> HistoryImported:
    (entry,) = journal.entries
    assert (entry.branch_id, entry.parent) == ("main", None)
    assert isinstance(entry.body, HistoryImported)
    return entry.body


def messages(*given: Json) -> list[ContextMessage]:
    return list(history(read(*given)).messages)


def text(words: str) -> Json:
    return block("text", text=words)


def test_a_state_becomes_one_history_with_the_whole_document() -> None:
    journal = read(said("user", text("hi")))
    body = history(journal)
    assert (journal.session_id, journal.agent_id) == ("s", None)
    assert (body.format, body.last_run) == ("tada-session", None)
    assert json.loads(body.document)["metadata"] == {"ü": [1.5, None]}
    assert '"ü":[1.5,null]' in body.document
    assert journal.report.lines == 1


def test_text_calls_and_results_become_a_transcript() -> None:
    assert messages(
        said("user", text("look"), text("there")),
        said(
            "assistant",
            block("thinking", thinking="hm", signature="s"),
            text("I look."),
            calls("c1"),
            calls("c2", tool_input=None),
        ),
        said("tool", tells("c1")),
        said("tool", tells("c2", "no", is_error=True)),
        said("assistant", text("Done.")),
    ) == [
        UserMessage("look\nthere"),
        AssistantMessage(
            "I look.",
            tool_calls=(
                ModelToolCall("c1", "look", '{"q": 1}'),
                ModelToolCall("c2", "look", "{}"),
            ),
        ),
        ToolMessage("c1", "look", "seen"),
        ToolMessage("c2", "look", "no", is_error=True),
        AssistantMessage("Done."),
    ]


def test_results_stand_behind_their_calls_and_none_is_missing() -> None:
    journal = read(
        said("assistant", calls("c1"), calls("c2")),
        said("user", text("and?")),
        said("tool", tells("c2", tool_name=None)),
        said("tool", tells("c9")),
    )
    assert list(history(journal).messages)[1:] == [
        ToolMessage("c2", "look", "seen"),
        ToolMessage("c1", "look", ABANDONED_CALL, is_error=True),
        UserMessage("and?"),
    ]
    assert journal.report.left_out == 1


def test_images_and_files_are_named_and_counted() -> None:
    image = block("image", source="base64", mime_type="image/png", data="AAAA", name="cat.png")
    nested = {"content_blocks": [text("a page"), image]}
    journal = read(
        said("user", text("see"), image),
        said("assistant", calls("c1")),
        said("tool", tells("c1", None, extra=nested)),
    )
    user, _, result = history(journal).messages
    assert user == UserMessage("see\n[image cat.png image/png]")
    assert result == ToolMessage("c1", "look", "a page\n[image cat.png image/png]")
    assert journal.report.left_out == 2
    assert "AAAA" in history(journal).document


def test_results_within_a_user_message_come_before_what_the_user_says() -> None:
    assert messages(said("assistant", calls("c1")), said("user", tells("c1"), text("thanks")))[
        1:
    ] == [ToolMessage("c1", "look", "seen"), UserMessage("thanks")]


def test_a_message_without_words_is_left_out() -> None:
    assert messages(said("user"), said("user", text(""))) == []


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (said("system", text("x")), "Invalid enum value 'system' - at `$.messages[0].role`"),
        ({"content": []}, "required field `role` - at `$.messages[0]`"),
        (said("user", {"text": "x"}), "required field `type` - at `$.messages[0].content[0]`"),
        (said("user", block("text", text=1)), "at `$.messages[0].content[0].text`"),
        (said("tool", tells("c", is_error="no")), "at `$.messages[0].content[0].is_error`"),
        (
            said("user", text("x"), calls("c")),
            "a user message holds a tool call - at `$.messages[0].content[1]`",
        ),
        (
            said("assistant", tells("c")),
            "an assistant message holds a tool result - at `$.messages[0].content[0]`",
        ),
        (
            said("assistant", calls("c", tool_name=None)),
            "tool_name is missing - at `$.messages[0].content[0]`",
        ),
        (
            said("assistant", calls("")),
            "tool_use_id is missing - at `$.messages[0].content[0]`",
        ),
        (
            said("tool", tells("c", extra={"content_blocks": [1]})),
            "`$[0]`, in `$.messages[0].content[0].extra.content_blocks`",
        ),
    ],
)
def test_what_is_no_message_is_refused_by_its_path(message: Json, reason: str) -> None:
    with pytest.raises(JournalFormatError) as caught:
        read(message)
    assert reason in caught.value.reason
    assert caught.value.line is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "truncated"),
        (b"[]", "Expected `object`"),
        (b"{}", "required field `messages`"),
        (b'{"schema_version":1,"session":{}}', "required field `messages`"),
        (b'{"messages":[],"metadata":NaN}', "malformed"),
        (b'{"messages":[],"metadata":{"a":"\\ud800"}}', ""),
        (b'{"messages":[],"usage":3}', "$.usage"),
        (b'{"a":' * 100_000, ""),
    ],
)
def test_what_is_no_state_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(JournalFormatError, match="the file cannot be imported") as caught:
        read_tada(data, session_id="s")
    assert reason in caught.value.reason
