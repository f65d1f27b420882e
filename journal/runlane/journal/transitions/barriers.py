"""Which records must be on replicas before the next step, where the durability level has them."""

from collections.abc import Sequence
from typing import Final

from runlane.journal.transitions.entries import Written
from runlane.journal.wire.events import Event
from runlane.journal.wire.records import (
    AnyBody,
    AttemptStarted,
    RunContinued,
    RunStarted,
    ToolCompleted,
    ToolStarted,
)

HARMLESS: Final = ("read_only", "idempotent")
"""Effects of tools that may run twice; any other counts as side-effecting."""

_ALWAYS: Final = (RunStarted, RunContinued, AttemptStarted, ToolCompleted, Written)
"""What is written again was lost once."""


def needs_barrier(entries: Sequence[AnyBody | Event | Written]) -> bool:
    """Return whether losing one of these records could repeat or hide a side effect.

    A result does not say which effect its tool has: each one counts.
    """
    return any(
        isinstance(entry, _ALWAYS)
        or (isinstance(entry, ToolStarted) and entry.effect not in HARMLESS)
        for entry in entries
    )
