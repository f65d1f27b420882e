"""Results that are more than text: what the model reads, what is kept, and what a record holds."""

import dataclasses
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools.support import NASTY_TEXT, Blobs

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.content import FileBlock, ImageBlock, TextBlock
from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import ToolOutcome
from runlane.worker.tools import Attachment, StepOutcome, ToolControl, ToolResult, keep_content
from runlane.worker.tools.content import BLOCKS_MAX

LIMIT = 1024
PNG = b"\x89PNG\r\n\x1a\n" + bytes(3000)
CHART = Attachment(PNG, "image/png", "chart.png")


async def kept(data: Any, *, blobs: Blobs | None = None, bytes_max: int = 10_000) -> ToolResult:
    """Return the result of a tool that gave `data`, as a record names it."""
    result = ToolResult.completed("t", StepOutcome(data), LIMIT)
    return await keep_content(result, (blobs or Blobs()).keep, bytes_max)


async def test_an_image_among_texts_is_kept_and_the_model_reads_where_it_belongs() -> None:
    blobs = Blobs()
    result = await kept(["Sales of May:", CHART, "They rose."], blobs=blobs)
    assert result.content == (
        'Sales of May:\n[image: image/png, 3008 bytes, "chart.png"]\nThey rose.'
    )
    ((ref, content),) = blobs.kept.items()
    assert (content, ref.media_type) == (PNG, "image/png")
    assert result.blocks == (ImageBlock(media_type="image/png", name="chart.png", blob=ref),)
    assert (result.outcome, result.full, result.unkept) == (ToolOutcome.OK, None, None)


@pytest.mark.parametrize(
    ("data", "content"),
    [
        (CHART, '[image: image/png, 3008 bytes, "chart.png"]'),
        ((CHART, {"rows": 3}), '[image: image/png, 3008 bytes, "chart.png"]\n{"rows": 3}'),
        (Attachment(b"", "application/pdf"), "[file: application/pdf, 0 bytes]"),
        (
            Attachment(b"a", "text/csv; charset=utf-8", 'a\n"b"'),
            '[file: text/csv; charset=utf-8, 1 bytes, "a\\n\\"b\\""]',
        ),
        (TextBlock("only text"), "only text"),
        (
            [TextBlock("see"), ImageBlock(media_type="image/gif", url="https://example.org/a.gif")],
            "see\n[image: image/gif, https://example.org/a.gif]",
        ),
        (
            FileBlock(media_type="application/zip", name="all", url="s3://bucket/all.zip"),
            '[file: application/zip, s3://bucket/all.zip, "all"]',
        ),
        (["one", "two"], '["one", "two"]'),
        ([], "[]"),
    ],
)
async def test_whatever_is_no_text_has_a_line_in_the_text(data: Any, content: str) -> None:
    assert (await kept(data)).content == content


async def test_what_stands_elsewhere_is_not_kept_here() -> None:
    blobs = Blobs()
    block = ImageBlock(media_type="image/gif", url="https://example.org/a.gif")
    result = ToolResult.completed("t", StepOutcome(["see", block]), LIMIT)
    assert result.blocks == (block,)
    assert await keep_content(result, blobs.keep, 10_000) is result
    assert blobs.kept == {}


async def test_an_attachment_that_is_too_large_is_lost_and_the_model_reads_so() -> None:
    blobs = Blobs()
    small = Attachment(b"small", "text/plain", "b")
    result = await kept([CHART, small], blobs=blobs, bytes_max=3007)
    assert result.content == (
        '[image: image/png, 3008 bytes, "chart.png"; it is lost: over 3007 bytes]\n'
        '[file: text/plain, 5 bytes, "b"]'
    )
    assert [*blobs.kept.values()] == [b"small"]
    assert len(result.blocks) == 1
    at_the_limit = await kept(CHART, bytes_max=3008)
    assert len(at_the_limit.blocks) == 1


async def test_a_long_text_beside_an_image_is_cut_and_kept_like_any_other() -> None:
    blobs = Blobs()
    result = await kept(["x" * 2000, CHART], blobs=blobs)
    assert result.full is not None
    line = '[image: image/png, 3008 bytes, "chart.png"]'
    assert blobs.kept[result.full].decode() == "x" * 2000 + "\n" + line
    assert result.content.startswith("x" * LIMIT + "\n[cut: ")
    assert len(result.blocks) == 1


async def test_the_output_of_a_run_is_the_text() -> None:
    step = StepOutcome([CHART, "done"], ToolControl.COMPLETE)
    result = await keep_content(ToolResult.completed("t", step, LIMIT), Blobs().keep, len(PNG))
    assert result.output == result.content == ('[image: image/png, 3008 bytes, "chart.png"]\ndone')


async def test_what_cannot_be_kept_fails_as_the_keeping_does() -> None:
    async def lost(content: bytes, media_type: str) -> BlobRef:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await keep_content(ToolResult.completed("t", StepOutcome(CHART), LIMIT), lost, 10_000)


@dataclasses.dataclass
class Report:
    title: str


NAMED = BlobRef(digest="0" * 64, size=1, media_type="image/png")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"chart": CHART}, "an Attachment is in other data"),
        ([{"chart": [CHART]}, CHART], "an Attachment is in other data"),
        ([CHART] * (BLOCKS_MAX + 1), f"it has {BLOCKS_MAX + 1} images and files"),
        (ImageBlock(media_type="image/png", blob=NAMED), "a block in it names a blob"),
        (FileBlock(media_type="a/b", url="x" * 9000), "a url in it has over 8192 bytes"),
        ([CHART, {(1,): 2}], "cannot be used"),
    ],
)
def test_content_that_no_record_can_hold_is_an_error_result(data: Any, why: str) -> None:
    result = ToolResult.completed("t", StepOutcome(data, ToolControl.COMPLETE), LIMIT)
    assert result.outcome is ToolOutcome.ERROR
    assert why in result.content
    assert result.control is ToolControl.CONTINUE
    assert (result.blocks, result.unkept) == ((), None)


async def test_data_beside_an_image_is_written_as_data_is() -> None:
    result = await kept([Report("May"), CHART, None])
    first, _, last = result.content.split("\n")
    assert (first, last) == ('{"title": "May"}', "null")


@pytest.mark.parametrize(
    ("data", "media_type", "text"),
    [
        ("text", "image/png", "holds bytes, not str"),
        (bytearray(b"a"), "image/png", "holds bytes, not bytearray"),
        (b"a", "png", "media type 'png'"),
        (b"a", "", "media type ''"),
        (b"a", "image/png\n", "media type"),
        (b"a", "image/png;" + "x" * 1000, "media type"),
        (b"a", "bild/größe", "media type"),
    ],
)
def test_what_is_no_attachment_is_refused_where_it_is_made(
    data: Any, media_type: str, text: str
) -> None:
    with pytest.raises(InvalidInputError, match=text):
        Attachment(data, media_type)


PARTS = st.one_of(
    NASTY_TEXT,
    st.builds(TextBlock, NASTY_TEXT),
    st.builds(
        Attachment,
        st.binary(max_size=20),
        st.sampled_from(["image/png", "text/plain"]),
        st.none() | NASTY_TEXT.map(lambda text: text * 20),
    ),
    st.builds(
        ImageBlock,
        media_type=st.just("image/png"),
        name=st.none() | NASTY_TEXT,
        url=st.sampled_from(["https://example.org/a", "x:\ud800"]),
    ),
)


@given(parts=st.lists(PARTS, min_size=1, max_size=6), bytes_max=st.integers(0, 20))
@settings(deadline=None)
async def test_whatever_content_a_tool_gives_a_record_holds_it(
    parts: list[Any], bytes_max: int
) -> None:
    blobs = Blobs()
    result = await kept([*parts, TextBlock("")], blobs=blobs, bytes_max=bytes_max)
    message = ToolMessage("call_1", "t", result.content, blocks=result.blocks)
    data = msgspec.msgpack.encode(message)
    assert msgspec.msgpack.decode(data, type=ToolMessage) == message
    attached = [part for part in parts if isinstance(part, Attachment)]
    small = [part.data for part in attached if len(part.data) <= bytes_max]
    named = [cast("ImageBlock", block).blob for block in result.blocks]
    assert [blobs.kept[ref] for ref in named if ref] == small
    elsewhere = sum(isinstance(part, ImageBlock) for part in parts)
    assert len(named) == len(small) + elsewhere
    assert len(data) < 5000
