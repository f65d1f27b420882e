"""What really happened to the outside world: a file beside Redis, written by the refund tool.

It is the judge of "at most once". One line each, `started <operation key> <attempt> <pid>` before
the side effect and `done …` after it, appended by whichever worker executes the call.
"""

import os
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

from runlane.journal.settings import load_settings

LEDGER_VARIABLE: Final = "RUNLANE_DEMO_LEDGER"


class Mark(StrEnum):
    """The two lines of one call."""

    STARTED = "started"
    DONE = "done"


class Entry(Struct, frozen=True):
    """One line.

    Attributes:
        mark: Before or after the side effect.
        operation_key: Of the call.
        attempt: The attempt of the run that made it.
        pid: The worker.
    """

    mark: Mark
    operation_key: str
    attempt: int
    pid: int


class Ledger:
    """The file; any number of processes append to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def from_env(cls) -> "Ledger":
        """Return the one that `RUNLANE_DEMO_LEDGER` names, else one in the data directory."""
        named = os.environ.get(LEDGER_VARIABLE)
        path = Path(named) if named else Path(load_settings().data_dir, "demo.ledger")
        path.parent.mkdir(parents=True, exist_ok=True)
        return cls(path)

    def append(self, entry: Entry) -> None:
        """Write one line, in one piece."""
        line = f"{entry.mark} {entry.operation_key} {entry.attempt} {entry.pid}\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def read(self) -> list[Entry]:
        """Return all lines, oldest first."""
        if not self.path.exists():
            return []
        lines = (line.split() for line in self.path.read_text().splitlines())
        return [Entry(Mark(mark), key, int(attempt), int(pid)) for mark, key, attempt, pid in lines]


def under_way(entries: list[Entry]) -> list[Entry]:
    """Return the calls that have started and are not done, oldest first."""
    done = {entry.operation_key for entry in entries if entry.mark is Mark.DONE}
    return [entry for entry in entries if entry.operation_key not in done]
