"""The result of a tool call, as the model reads it and as the journal keeps it."""

from typing import Any, Final, Self

from msgspec import Struct

from runlane.journal.wire.records import ToolOutcome
from runlane.worker.tools.effects import StepOutcome, ToolControl
from runlane.worker.tools.texts import cut, describe, json_text, storable
from runlane.worker.tools.validation import ArgumentError

NAME_BYTES_MAX: Final = 128
"""Of a name in a payload: a registered one has 64 at most, but a model may ask for any."""
ERROR_BYTES_MAX: Final = 4096
"""Of the text of an exception in a payload."""


class ToolResult(Struct, frozen=True):
    """How a tool call ended.

    Attributes:
        content: Text for the model; valid UTF-8.
        outcome: What is known about the call.
        control: How the loop goes on.
        output: The content, as the output of the run, if the loop does not continue.
    """

    content: str
    outcome: ToolOutcome
    control: ToolControl = ToolControl.CONTINUE
    output: str | None = None

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
        content = cut(storable(text), bytes_max)
        goes_on = step.control == ToolControl.CONTINUE
        return cls(content, ToolOutcome.OK, step.control, None if goes_on else content)

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
