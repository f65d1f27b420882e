"""The result of a tool call, as the model reads it and as the journal keeps it."""

from typing import Any, Final, Self

from msgspec import Struct

from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.records import ToolOutcome
from runlane.worker.tools.effects import StepOutcome, ToolControl
from runlane.worker.tools.texts import cut, describe, first_bytes, json_text, storable
from runlane.worker.tools.validation import ArgumentError

NAME_BYTES_MAX: Final = 128
"""Of a name in a payload: a registered one has 64 at most, but a model may ask for any."""
ERROR_BYTES_MAX: Final = 4096
"""Of the text of an exception in a payload."""
TEXT: Final = "text/plain"
JSON: Final = "application/json"


class Oversize(Struct, frozen=True):
    """The whole content of a result that is too long for a record.

    Attributes:
        text: All of it; valid UTF-8.
        media_type: What it is.
        bytes_max: How many bytes of it the model reads.
    """

    text: str
    media_type: str
    bytes_max: int

    def first(self, bytes_max: int) -> tuple[bytes, str]:
        """Return as much of it as may be kept, and what that is: a part of JSON is but text."""
        whole = self.text.encode()
        if len(whole) <= bytes_max:
            return whole, self.media_type
        return first_bytes(whole, bytes_max), TEXT

    def excerpt(self, ref: BlobRef) -> str:
        """Return what the model reads once so much is kept."""
        size = len(self.text.encode())
        kept = f"all {size} are kept as blob {ref.digest}"
        if ref.size < size:
            kept = f"the first {ref.size} are kept as blob {ref.digest}, the rest is lost"
        return cut(self.text, self.bytes_max, note=f"; {kept}")


class ToolResult(Struct, frozen=True):
    """How a tool call ended.

    Attributes:
        content: Text for the model; valid UTF-8.
        outcome: What is known about the call.
        control: How the loop goes on.
        output: The content, as the output of the run, if the loop does not continue.
        oversize: All of a content that is cut, until it is kept elsewhere.
        full: Where all of it is kept.
    """

    content: str
    outcome: ToolOutcome
    control: ToolControl = ToolControl.CONTINUE
    output: str | None = None
    oversize: Oversize | None = None
    full: BlobRef | None = None

    @property
    def is_error(self) -> bool:
        """Whether the call failed, was stopped or has an unknown outcome."""
        return self.outcome is not ToolOutcome.OK

    @classmethod
    def completed(cls, tool: str, step: StepOutcome, bytes_max: int) -> Self:
        """The tool gave a result; over `bytes_max` bytes it is cut. One that is not JSON fails."""
        try:
            text = step.data if isinstance(step.data, str) else json_text(step.data)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # data of the tool's own types runs the tool's code here
            return cls.failed(
                tool, f"the call ended, but its result is not JSON: {describe(error)}"
            )
        text = storable(text)
        content = cut(text, bytes_max)
        goes_on = step.control == ToolControl.CONTINUE
        output = None if goes_on else content
        if content == text:
            return cls(content, ToolOutcome.OK, step.control, output)
        media_type = TEXT if isinstance(step.data, str) else JSON
        oversize = Oversize(text, media_type, bytes_max)
        return cls(content, ToolOutcome.OK, step.control, output, oversize)

    def kept_as(self, ref: BlobRef) -> "ToolResult":
        """Return the result as it is once its whole content is kept: it says where."""
        if self.oversize is None:
            return self
        content = self.oversize.excerpt(ref)
        output = None if self.output is None else content
        return ToolResult(content, self.outcome, self.control, output, full=ref)

    @classmethod
    def failed(cls, tool: str, error: str) -> Self:
        """The call failed, or was refused before it ran."""
        return cls(_payload("error", tool, error=_bounded(error)), ToolOutcome.ERROR)

    @classmethod
    def invalid(cls, tool: str, errors: tuple[ArgumentError, ...]) -> Self:
        """The arguments do not fit the tool's schema; nothing ran."""
        content = _payload("error", tool, code="invalid_tool_arguments", errors=errors)
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


def _payload(status: str, tool: str, **more: Any) -> str:
    name = cut(storable(tool), NAME_BYTES_MAX)
    return storable(json_text({"status": status, "tool": name, **more}))


def _bounded(text: str) -> str:
    return cut(storable(text), ERROR_BYTES_MAX)
