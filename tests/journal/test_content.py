"""Blocks of a message: one source each, and nothing inline."""

from typing import Any

import msgspec
import pytest

from runlane.journal.errors import InvalidInputError, UndecodableError
from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.codec import decode_body, encode, encode_body
from runlane.journal.wire.content import ContentBlock, FileBlock, ImageBlock, TextBlock
from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import ToolCompleted, ToolOutcome

BLOB = BlobRef(digest="ab" * 32, size=3, media_type="image/png")
URL = "https://example.org/a.png"
RECORD = ToolCompleted(
    run_id="r",
    attempt=1,
    turn=1,
    index=0,
    outcome=ToolOutcome.OK,
    message=ToolMessage(
        "c",
        "draw",
        "[image: image/png, 3 bytes]",
        blocks=(
            TextBlock("see"),
            ImageBlock(media_type="image/png", blob=BLOB),
            FileBlock(media_type="application/pdf", name="a.pdf", url="s3://b/a.pdf"),
        ),
    ),
)


@pytest.mark.parametrize("block", [ImageBlock, FileBlock])
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "has one source"),
        ({"blob": BLOB, "url": URL}, "has one source"),
        ({"url": ""}, "never a data: URL"),
        ({"url": "data:image/png;base64,AAAA"}, "never a data: URL"),
        ({"url": "DATA:,a"}, "never a data: URL"),
        ({"url": f"{URL} and more"}, "is its address"),
        ({"url": URL, "media_type": "png"}, "write it as type/subtype"),
        ({"url": URL, "media_type": "image/png\n"}, "write it as type/subtype"),
    ],
)
def test_a_block_without_one_proper_source_is_refused(
    block: type[ImageBlock | FileBlock], fields: dict[str, Any], text: str
) -> None:
    fields = {"media_type": "image/png", **fields}
    with pytest.raises(InvalidInputError, match=text):
        block(**fields)
    with pytest.raises(msgspec.ValidationError, match=text):
        msgspec.convert(
            {"type": block.__struct_config__.tag, **msgspec.to_builtins(fields)}, ContentBlock
        )


def test_a_record_keeps_its_blocks() -> None:
    kind, data = encode_body(RECORD)
    assert kind == "tool_completed"
    assert decode_body(kind, data) == RECORD


def test_a_record_from_before_there_were_blocks_has_none() -> None:
    older = msgspec.to_builtins(RECORD)
    del older["message"]["blocks"]
    body = decode_body("tool_completed", encode(older))
    assert isinstance(body, ToolCompleted)
    assert body.message.blocks == ()
    assert len(encode(body)) == len(encode(older))


def test_a_record_with_a_damaged_block_is_undecodable() -> None:
    damaged = msgspec.to_builtins(RECORD)
    damaged["message"]["blocks"][1]["url"] = URL
    with pytest.raises(UndecodableError, match="one source"):
        decode_body("tool_completed", encode(damaged))
