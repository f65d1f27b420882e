"""What a tool does to the world, and what it says to the loop."""

from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from runlane.journal.errors import InvalidInputError


class ToolEffect(StrEnum):
    """What happens to the world if a call is made twice."""

    READ_ONLY = "read_only"
    """Nothing: the call only looks."""
    IDEMPOTENT = "idempotent"
    """Nothing more than the first time, given the same operation key."""
    SIDE_EFFECTING = "side_effecting"
    """It happens twice. Also what an undeclared or unknown tool counts as."""


class ToolControl(StrEnum):
    """How the loop goes on after a tool call."""

    CONTINUE = "continue"
    """The model reads the result."""
    COMPLETE = "complete"
    """The run is done, with the result as its output."""
    REJECT = "reject"
    """The run ends: what was asked for is not allowed."""
    CANCEL = "cancel"
    """The run ends: the tool calls it off."""


class StepOutcome(Struct, frozen=True):
    """What a tool call gave.

    Attributes:
        data: Text, or anything that can be written as JSON.
        control: How the loop goes on.

    Raises:
        InvalidInputError: The control is none.
    """

    data: Any
    control: ToolControl = ToolControl.CONTINUE

    def __post_init__(self) -> None:
        if self.control not in list(ToolControl):
            known = ", ".join(ToolControl)
            raise InvalidInputError(f"unknown control {self.control!r}; use one of {known}")
        force_setattr(self, "control", ToolControl(self.control))
