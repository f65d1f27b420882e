"""The result of a tool call, as the model reads it and as the journal keeps it."""

from typing import Any, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.content import ContentBlock
from runlane.journal.wire.records import ToolOutcome
from runlane.worker.tools.content import TEXT, Content, Keep
from runlane.worker.tools.effects import StepOutcome, ToolControl
from runlane.worker.tools.texts import cut, describe, first_bytes, json_text, storable
from runlane.worker.tools.validation import ArgumentError

NAME_BYTES_MAX: Final = 128
"""Of a name in a payload: a registered one has 64 at most, but a model may ask for any."""
ERROR_BYTES_MAX: Final = 4096
"""Of the text of an exception in a payload."""
PREFIX_BYTES_MAX: Final = 64 * 1024


class Unkept(Struct, frozen=True):
    """A result that a record has no room for: its text is too long, or it has attachments.

    Attributes:
        content: All of it.
        text_bytes_max: How many bytes of its text the model reads.
    """

    content: Content
    text_bytes_max: int


class ToolResult(Struct, frozen=True):
    """How a tool call ended.

    Attributes:
        content: Text for the model; valid UTF-8.
        outcome: What is known about the call.
        control: How the loop goes on.
        output: The content, as the output of the run, if the loop does not continue.
        blocks: The images and files that are part of it.
        full: Where all of a text that was cut is kept.
        unkept: What `keep_content` is still to keep.
    """

    content: str
    outcome: ToolOutcome
    control: ToolControl = ToolControl.CONTINUE
    output: str | None = None
    blocks: tuple[ContentBlock, ...] = ()
    full: BlobRef | None = None
    unkept: Unkept | None = None

    @property
    def is_error(self) -> bool:
        """Whether the call failed, was stopped or has an unknown outcome."""
        return self.outcome is not ToolOutcome.OK

    @classmethod
    def completed(cls, tool: str, step: StepOutcome, bytes_max: int) -> Self:
        """The tool gave a result; text over `bytes_max` bytes is cut. What is no content fails."""
        try:
            content = Content.of(step.data)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # data of the tool's own types runs the tool's code here
            return cls.failed(
                tool, f"the call ended, but its result cannot be used: {describe(error)}"
            )
        text = content.text
        shown = cut(text, bytes_max)
        whole = shown == text and not content.has_attachments
        return cls(
            content=shown,
            outcome=ToolOutcome.OK,
            control=step.control,
            output=None if step.control == ToolControl.CONTINUE else shown,
            blocks=content.blocks,
            unkept=None if whole else Unkept(content, bytes_max),
        )

    def prefixed(self, prefix: str) -> Self:
        """Return a kept result with a text that the model reads before it; the output stays."""
        assert self.unkept is None
        text = cut(storable(prefix), PREFIX_BYTES_MAX)
        return replace(self, content=f"{text}\n{self.content}")

    def marked_failed(self) -> Self:
        """Return the result as that of a call that failed, whatever it says."""
        return self if self.is_error else replace(self, outcome=ToolOutcome.ERROR)

    @classmethod
    def failed(cls, tool: str, error: str) -> Self:
        """The call failed, or was refused before it ran."""
        return cls(_payload("error", tool, error=_bounded(error)), ToolOutcome.ERROR)

    @classmethod
    def invalid(
        cls, tool: str, errors: tuple[ArgumentError, ...], *, truncated: bool = False
    ) -> Self:
        """The arguments do not fit the tool's schema, in more ways if `truncated`; nothing ran."""
        more: dict[str, Any] = {"errors": errors} | ({"truncated": True} if truncated else {})
        content = _payload("error", tool, code="invalid_tool_arguments", **more)
        return cls(content, ToolOutcome.ERROR)

    @classmethod
    def cancelled(cls, tool: str, reason: str) -> Self:
        """The call was told to stop, or to not start."""
        return cls(_payload("cancelled", tool, error=_bounded(reason)), ToolOutcome.CANCELLED)

    @classmethod
    def unknown(cls, tool: str) -> Self:
        """Nobody knows whether the call happened."""
        error = (
            "the call was started and its result was lost: it may or may not have happened. "
            "Check what it did before repeating it"
        )
        return cls(_payload("outcome_unknown", tool, error=error), ToolOutcome.UNKNOWN)


async def keep_content(result: ToolResult, keep: Keep, bytes_max: int) -> ToolResult:
    """Keep what a record has no room for beside the journal; return the result that names it.

    Args:
        result: As it came; if nothing of it is to be kept, it is returned itself.
        keep: Keeps bytes of a media type; the record of the result is to be the next one.
        bytes_max: The most that may be kept at once. The text of a result is kept up to there, a
            larger attachment not at all; the model reads that the rest is lost.

    Raises:
        Exception: Whatever `keep` raises.
    """
    if result.unkept is None:
        return result
    content = await result.unkept.content.kept(keep, bytes_max)
    text, full = content.text, None
    whole = text.encode()
    if len(whole) > result.unkept.text_bytes_max:
        first = first_bytes(whole, bytes_max)
        full = await keep(first, content.media_type if len(first) == len(whole) else TEXT)
        text = _excerpt(text, result.unkept.text_bytes_max, len(whole), full)
    output = None if result.output is None else text
    return replace(
        result, content=text, output=output, blocks=content.blocks, full=full, unkept=None
    )


def _excerpt(text: str, bytes_max: int, size: int, full: BlobRef) -> str:
    kept = f"all {size} are kept as blob {full.digest}"
    if full.size < size:
        kept = f"the first {full.size} are kept as blob {full.digest}, the rest is lost"
    return cut(text, bytes_max, note=f"; {kept}")


def _payload(status: str, tool: str, **more: Any) -> str:
    name = cut(storable(tool), NAME_BYTES_MAX)
    return storable(json_text({"status": status, "tool": name, **more}))


def _bounded(text: str) -> str:
    return cut(storable(text), ERROR_BYTES_MAX)
