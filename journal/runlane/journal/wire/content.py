"""What a message holds besides its text: images and files, free of any provider's format."""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.blobs import BlobRef

MEDIA_TYPE: Final = re.compile(r"[\w.+-]{1,127}/[\w.+-]{1,127}(;[ -~]{0,255})?", re.ASCII)
ADDRESS: Final = re.compile(r"(?!data:)\S+", re.IGNORECASE)
"""A record holds no bytes of an image or a file, and a `data:` URL is nothing else."""


class TextBlock(Struct, frozen=True, tag_field="type", tag="text"):
    """Text."""

    text: str


class _FromSource(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    media_type: str
    name: str | None = None
    blob: BlobRef | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        check_media_type(self.media_type)
        if (self.blob is None) == (self.url is None):
            raise InvalidInputError("an image or a file has one source: either a blob or a url")
        if self.url is not None and not ADDRESS.fullmatch(self.url):
            raise InvalidInputError(
                "the url of an image or a file is its address, and never a data: URL; "
                "a tool returns bytes as an Attachment"
            )


class ImageBlock(_FromSource, frozen=True, kw_only=True, tag="image"):
    """An image: kept beside the journal, or to be found elsewhere.

    Attributes:
        media_type: Such as `image/png`.
        name: What to call it; None if it has no name.
        blob: Where it is kept.
        url: Where it is found.

    Raises:
        InvalidInputError: It has no source or two, or its media type or address is none.
    """


class FileBlock(_FromSource, frozen=True, kw_only=True, tag="file"):
    """A file of any other kind: kept beside the journal, or to be found elsewhere.

    Attributes:
        media_type: Such as `application/pdf`.
        name: What to call it; None if it has no name.
        blob: Where it is kept.
        url: Where it is found.

    Raises:
        InvalidInputError: It has no source or two, or its media type or address is none.
    """


ContentBlock = TextBlock | ImageBlock | FileBlock


def blobs_in(blocks: Iterable[ContentBlock]) -> list[BlobRef]:
    """Return the blobs that blocks name, in their order."""
    return [block.blob for block in blocks if not isinstance(block, TextBlock) and block.blob]


def check_media_type(media_type: str) -> None:
    """Check that a media type is one.

    Raises:
        InvalidInputError: It is not.
    """
    if not MEDIA_TYPE.fullmatch(media_type):
        raise InvalidInputError(f"media type {media_type!r}: write it as type/subtype")
