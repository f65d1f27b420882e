import json
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from tests.tools.support import NASTY_TEXT, Blobs

from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import ToolOutcome
from runlane.worker.tools import (
    ArgumentError,
    StepOutcome,
    ToolControl,
    ToolResult,
    keep_content,
)
from runlane.worker.tools.texts import cut, json_text, storable

LIMIT = 1024

ANY_DATA: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | NASTY_TEXT
    | st.binary(max_size=5)
    | st.dates()
    | st.decimals()
    | st.uuids()
    | st.builds(object),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(NASTY_TEXT | st.integers() | st.tuples(st.integers()), inner, max_size=3)
    ),
    max_leaves=10,
)


def keep(result: ToolResult) -> ToolMessage:
    """Write the result as a journal does."""
    result.content.encode()
    message = ToolMessage("call_1", "t", result.content, is_error=result.is_error)
    return msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=ToolMessage)


def payload(result: ToolResult) -> Any:
    return json.loads(result.content)


@given(data=ANY_DATA)
@example(data=float("nan"))
@example(data={"a": [float("inf"), "NaN"]})
@example(data="\ud800")
@settings(deadline=None)
def test_whatever_a_tool_returns_can_be_kept(data: Any) -> None:
    result = ToolResult.completed("t", StepOutcome(data), LIMIT)
    assert keep(result).content == result.content
    assert result.outcome in {ToolOutcome.OK, ToolOutcome.ERROR}
    if not isinstance(data, str) and len(result.content) < LIMIT:
        json.loads(result.content, parse_constant=pytest.fail)


@given(text=NASTY_TEXT)
@settings(deadline=None)
def test_whatever_a_text_holds_it_can_be_kept(text: str) -> None:
    for result in (
        ToolResult.failed(text, text),
        ToolResult.cancelled(text, text),
        ToolResult.unknown(text),
        ToolResult.invalid(text, (ArgumentError(text, text, text),)),
    ):
        assert keep(result).is_error
        assert payload(result)["tool"] == storable(text)


@given(text=st.text(alphabet=list("aé€😀"), max_size=60), bytes_max=st.integers(0, 80))
@settings(deadline=None)
def test_the_cut_falls_between_characters_and_says_what_is_missing(
    text: str, bytes_max: int
) -> None:
    size = len(text.encode())
    shortened = cut(text, bytes_max)
    if size <= bytes_max:
        assert shortened == text
        return
    kept, _, marker = shortened.rpartition("\n")
    assert text.startswith(kept)
    assert bytes_max - 4 < len(kept.encode()) <= bytes_max
    assert marker == f"[cut: {size - len(kept.encode())} of {size} bytes are missing]"


def test_long_results_are_cut() -> None:
    result = ToolResult.completed("t", StepOutcome("€" * 1000), LIMIT)
    assert result.outcome is ToolOutcome.OK
    assert result.content == "€" * 341 + "\n[cut: 1977 of 3000 bytes are missing]"


async def test_a_long_result_says_where_all_of_it_is_kept() -> None:
    blobs = Blobs()
    step = StepOutcome("€" * 1000, ToolControl.COMPLETE)
    result = ToolResult.completed("t", step, LIMIT)
    kept = await keep_content(result, blobs.keep, 3000)
    assert kept.full is not None
    assert blobs.kept == {kept.full: ("€" * 1000).encode()}
    assert kept.full.media_type == "text/plain"
    where = f"all 3000 are kept as blob {kept.full.digest}]"
    assert kept.content == "€" * 341 + f"\n[cut: 1977 of 3000 bytes are missing; {where}"
    assert kept.output == kept.content
    assert (kept.outcome, kept.control) == (result.outcome, result.control)
    assert await keep_content(kept, blobs.keep, 3000) is kept


async def test_what_is_too_long_to_be_kept_whole_is_kept_in_part_and_says_so() -> None:
    blobs = Blobs()
    result = ToolResult.completed("t", StepOutcome(["€" * 1000]), LIMIT)
    whole = await keep_content(result, blobs.keep, 3004)
    part = await keep_content(result, blobs.keep, 2000)
    assert whole.full is not None
    assert part.full is not None
    assert (whole.full.media_type, part.full.media_type) == ("application/json", "text/plain")
    assert blobs.kept[whole.full].decode() == '["' + "€" * 1000 + '"]'
    assert blobs.kept[part.full].decode() == '["' + "€" * 666
    assert part.content.endswith(
        "\n[cut: 1982 of 3004 bytes are missing; "
        f"the first 2000 are kept as blob {part.full.digest}, the rest is lost]"
    )


async def test_a_short_result_is_kept_nowhere_else() -> None:
    blobs = Blobs()
    for result in (
        ToolResult.completed("t", StepOutcome("x" * LIMIT), LIMIT),
        ToolResult.failed("t", "x" * 10 * LIMIT),
    ):
        assert await keep_content(result, blobs.keep, LIMIT) is result
    assert blobs.kept == {}


def test_a_hook_may_add_a_text_and_call_it_a_failure() -> None:
    result = ToolResult.completed("t", StepOutcome("done", ToolControl.COMPLETE), LIMIT)
    told = result.prefixed("note: \ud800").marked_failed()
    assert (told.content, told.output) == ("note: \ufffd\ndone", "done")
    assert (told.outcome, told.is_error, told.control) == (
        ToolOutcome.ERROR,
        True,
        ToolControl.COMPLETE,
    )
    assert len(result.prefixed("x" * 10_000_000).content) < 100_000
    unknown = ToolResult.unknown("t")
    assert unknown.marked_failed() is unknown


class Shade(Enum):
    DARK = "dark"


class Point(Struct):
    x: int


@dataclass
class Place:
    name: str


@pytest.mark.parametrize(
    ("data", "content"),
    [
        ("plain text", "plain text"),
        (None, "null"),
        ({"é": 1}, '{"é": 1}'),
        ([Point(1), Place("a"), Shade.DARK], '[{"x": 1}, {"name": "a"}, "dark"]'),
        ({"day": date(2026, 1, 2)}, '{"day": "2026-01-02"}'),
        ([float("nan"), float("-inf"), "NaN"], '[null, null, "NaN"]'),
        ({1: ValueError("odd")}, '{"1": "odd"}'),
        ("\ud83d\ude00\udfff", "😀\ufffd"),
    ],
)
def test_data_is_written_as_json(data: Any, content: str) -> None:
    result = ToolResult.completed("t", StepOutcome(data), LIMIT)
    assert (result.content, result.outcome) == (content, ToolOutcome.OK)


class Mute:
    def __str__(self) -> str:
        raise LookupError("no words")


class Leaving:
    def __str__(self) -> str:
        raise SystemExit


def test_data_that_is_not_json_is_an_error() -> None:
    loop: list[Any] = []
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for data in (loop, deep, {(1, 2): 3}, Mute(), Leaving()):
        result = ToolResult.completed("t", StepOutcome(data, ToolControl.COMPLETE), LIMIT)
        assert result.outcome is ToolOutcome.ERROR
        assert result.control is ToolControl.CONTINUE
        assert "its result cannot be used" in payload(result)["error"]


@pytest.mark.parametrize("control", ToolControl)
def test_the_output_is_set_if_the_loop_does_not_continue(control: ToolControl) -> None:
    result = ToolResult.completed("t", StepOutcome({"a": 1}, control), LIMIT)
    assert result.control is control
    assert result.output == (None if control is ToolControl.CONTINUE else '{"a": 1}')


def test_the_payloads_are_fixed() -> None:
    assert ToolResult.failed("t", "boom").content == (
        '{"status": "error", "tool": "t", "error": "boom"}'
    )
    assert ToolResult.cancelled("t", "stop").content == (
        '{"status": "cancelled", "tool": "t", "error": "stop"}'
    )
    assert payload(ToolResult.invalid("t", (ArgumentError("/a", "type", "no"),))) == {
        "status": "error",
        "tool": "t",
        "code": "invalid_tool_arguments",
        "errors": [{"path": "/a", "keyword": "type", "message": "no"}],
    }
    unknown = ToolResult.unknown("t")
    assert unknown.outcome is ToolOutcome.UNKNOWN
    assert payload(unknown)["status"] == "outcome_unknown"
    assert "may or may not have happened" in payload(unknown)["error"]


def test_error_texts_are_bounded() -> None:
    result = ToolResult.failed("t" * 1000, "é" * 100_000)
    assert len(result.content.encode()) < 5000
    assert "bytes are missing]" in payload(result)["error"]


def test_json_text_refuses_what_it_cannot_write() -> None:
    with pytest.raises(TypeError):
        json_text({(1,): 2})
