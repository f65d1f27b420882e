"""Ways to break one rule of a sound journal."""

from collections.abc import Callable
from typing import Any

from tests.transfer.ejagent_files import (
    SUMMARY,
    FileBuilder,
    Json,
    assistant,
    encoded,
    result,
    sample,
    user,
)

Breach = tuple[list[bytes], int, str]
"""Lines, the number of the one that is refused, and a part of the reason."""


def with_line(number: int, says: str, **changes: Any) -> Breach:
    """Change keys of a line's envelope; a value of `...` takes the key away."""
    lines = sample().lines
    _change(lines[number - 1], changes)
    return encoded(lines), number, says


def with_data(number: int, says: str, **changes: Any) -> Breach:
    """Change keys of a line's data."""
    lines = sample().lines
    _change(lines[number - 1]["data"], changes)
    return encoded(lines), number, says


def with_document(says: str, **parts: Any) -> Breach:
    """Change parts of the session in the document of line 12."""
    lines = sample().lines
    _change(lines[11]["data"]["document"]["session"], parts)
    return encoded(lines), 12, says


def _change(target: Json, changes: Json) -> None:
    for key, value in changes.items():
        if value is ...:
            del target[key]
        else:
            target[key] = value


def with_raw(number: int, says: str, change: Callable[[bytes], bytes]) -> Breach:
    lines = sample().encoded
    lines[number - 1] = change(lines[number - 1])
    return lines, number, says


def with_more(says: str, *add: Callable[[FileBuilder], object]) -> Breach:
    """Add lines to the sample; the last one is refused."""
    file = sample()
    for step in add:
        step(file)
    return file.encoded, len(file.lines), says


def start(run_id: str, sequence: int = 1, branch: str = "side") -> Callable[[FileBuilder], object]:
    return lambda file: file.add("run_started", sequence, branch, run_id=run_id, task="t")


def say(run_id: str, sequence: int, branch: str = "side") -> Callable[[FileBuilder], object]:
    message = assistant("x")
    return lambda file: file.add(
        "message_appended", sequence, branch, run_id=run_id, message=message
    )


def end(run_id: str, sequence: int, branch: str = "side") -> Callable[[FileBuilder], object]:
    return lambda file: file.add("run_finished", sequence, branch, run_id=run_id, result=result())


def compact(operation_id: str, branch: str) -> Callable[[FileBuilder], object]:
    return lambda file: file.add(
        "compaction_applied",
        2,
        branch,
        operation_id=operation_id,
        summary=SUMMARY,
        messages=[user("x")],
    )


def with_message(says: str, message: Json) -> Breach:
    return with_data(5, says, message=message)
