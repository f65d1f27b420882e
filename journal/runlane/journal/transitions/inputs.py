"""What was said to a run, as the scripts take and give it."""

from collections.abc import Sequence

from runlane.journal.transitions.entries import Written
from runlane.journal.wire.control import ControlInput, ControlInputKind


def steering(input_id: str, content: str) -> ControlInput:
    """Return an input that steers."""
    return ControlInput(input_id=input_id, kind=ControlInputKind.STEERING, content=content)


def decode_inputs(raw: Sequence[bytes]) -> tuple[ControlInput, ...]:
    """Return inputs that wait to be heard, oldest first."""
    words = (each.decode().partition(" ") for each in raw)
    return tuple(steering(input_id, content) for input_id, _, content in words)


def settled_by(written: Sequence[Written]) -> str:
    """Return the ids of the inputs that records settle, each between spaces; empty if none does."""
    ids = [each.settles for each in written if each.settles]
    return f" {' '.join(ids)} " if ids else ""
