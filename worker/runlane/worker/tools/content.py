"""What a tool gives back: text, data, images and files."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Self, cast

from msgspec import Struct
from msgspec.structs import replace

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.content import (
    ContentBlock,
    FileBlock,
    ImageBlock,
    TextBlock,
    check_media_type,
)
from runlane.worker.tools.texts import builtins, first_bytes, json_text, storable

TEXT: Final = "text/plain"
JSON: Final = "application/json"
FILE_NAME_BYTES_MAX: Final = 255
URL_BYTES_MAX: Final = 8 * 1024
BLOCKS_MAX: Final = 100
"""Of one result; with the two limits above they leave a record room for its text."""

Keep = Callable[[bytes, str], Awaitable[BlobRef]]
"""Keeps bytes of a media type beside the journal."""


class Attachment(Struct, frozen=True):
    """An image or another file that a tool returns, by itself or in a list with texts.

    Attributes:
        data: Its bytes.
        media_type: What they are, such as `image/png`.
        name: What to call it.

    Raises:
        InvalidInputError: The data are no bytes, or the media type is none.
    """

    data: bytes
    media_type: str
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.data), bytes):
            raise InvalidInputError(f"an Attachment holds bytes, not {type(self.data).__name__}")
        check_media_type(self.media_type)

    @property
    def is_image(self) -> bool:
        """Whether it is an image."""
        return self.media_type.startswith("image/")

    def kept_as(self, ref: BlobRef) -> ImageBlock | FileBlock:
        """Return it as a record holds it."""
        block = ImageBlock if self.is_image else FileBlock
        return block(media_type=self.media_type, name=self.name, blob=ref)


Part = str | Attachment | ImageBlock | FileBlock


class Content(Struct, frozen=True):
    """A result as it was returned, in order; text in it is valid UTF-8.

    Attributes:
        parts: At least one.
        media_type: What its text is.
    """

    parts: tuple[Part, ...]
    media_type: str = TEXT

    @classmethod
    def of(cls, data: Any) -> Self:
        """Read what a tool returned.

        A list that has an `Attachment` or a block in it is content, each other member a text of
        its own; any other list is data, like all else, and is written as JSON.

        Raises:
            InvalidInputError: There are too many blocks, or a url is too long, or a block names a
                blob: a tool has none.
            Exception: It cannot be written as JSON, for whatever reason.
        """
        if isinstance(data, str):
            return cls((storable(data),))
        members = cast("Iterable[Any]", data if isinstance(data, list | tuple) else (data,))
        if not any(isinstance(each, _BLOCKS) for each in members):
            return cls((_json(data),), JSON)
        parts = tuple(_part(each) for each in members)
        blocks = sum(not isinstance(part, str) for part in parts)
        if blocks > BLOCKS_MAX:
            raise InvalidInputError(f"it has {blocks} images and files, the most is {BLOCKS_MAX}")
        return cls(parts)

    @property
    def text(self) -> str:
        """What the model reads: a line in the place of each image and file."""
        return "\n".join([part if isinstance(part, str) else _line(part) for part in self.parts])

    @property
    def blocks(self) -> tuple[ContentBlock, ...]:
        """What a record holds besides the text."""
        return tuple([part for part in self.parts if isinstance(part, (ImageBlock, FileBlock))])

    @property
    def has_attachments(self) -> bool:
        """Whether a part of it must be kept elsewhere before a record can hold it."""
        return any(isinstance(part, Attachment) for part in self.parts)

    async def kept(self, keep: Keep, bytes_max: int) -> Self:
        """Return it with every attachment kept; of one that is too large only a line is left."""
        return replace(self, parts=tuple([await _kept(p, keep, bytes_max) for p in self.parts]))


_BLOCKS: Final = (Attachment, TextBlock, ImageBlock, FileBlock)


def _part(value: Any) -> Part:
    match value:
        case str():
            return storable(value)
        case TextBlock():
            return storable(value.text)
        case Attachment():
            return replace(value, name=_name(value.name))
        case ImageBlock() | FileBlock():
            return replace(value, name=_name(value.name), url=_url(value))
        case _:
            return _json(value)


def _json(data: Any) -> str:
    return storable(json_text(data, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, Attachment):
        raise InvalidInputError("an Attachment is in other data; it goes by itself or in a list")
    return builtins(value)


def _name(name: str | None) -> str | None:
    if not name:
        return None
    return first_bytes(storable(name).encode(), FILE_NAME_BYTES_MAX).decode()


def _url(block: ImageBlock | FileBlock) -> str:
    if block.url is None:
        raise InvalidInputError("a block in it names a blob; a tool returns an Attachment instead")
    url = storable(block.url)
    if len(url.encode()) > URL_BYTES_MAX:
        raise InvalidInputError(f"a url in it has over {URL_BYTES_MAX} bytes")
    return url


async def _kept(part: Part, keep: Keep, bytes_max: int) -> Part:
    if not isinstance(part, Attachment):
        return part
    if len(part.data) > bytes_max:
        return _line(part, f"; it is lost: over {bytes_max} bytes")
    return part.kept_as(await keep(part.data, part.media_type))


def _line(part: Attachment | ImageBlock | FileBlock, note: str = "") -> str:
    """Return what the model reads in the place of an image or a file."""
    if isinstance(part, Attachment):
        is_image, size, url = part.is_image, len(part.data), None
    else:
        is_image, url = isinstance(part, ImageBlock), part.url
        size = part.blob.size if part.blob else 0
    told = [part.media_type, url or f"{size} bytes"]
    told += [json_text(part.name)] if part.name else []
    return f"[{'image' if is_image else 'file'}: {', '.join(told)}{note}]"
