"""When jobs began: one file that any number of processes append to."""

import asyncio
import os
import struct
import time
from pathlib import Path
from typing import Final

from msgspec import Struct

_READY: Final = -1
_GO: Final = -2
_WATCH_S: Final = 0.002

_MARK: Final = struct.Struct("<qqq")


class Mark(Struct, frozen=True):
    """One beginning.

    Attributes:
        number: The job; negative for workers that wait to begin, and for their permission.
        at_ns: When, by the clock of the host that all processes share.
        pid: The process that did it.
    """

    number: int
    at_ns: int
    pid: int


class Marks:
    """The file, for the processes that write it and the one that reads it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, number: int) -> None:
        """Say that a job begins now, in this process."""
        os.write(self._file, _MARK.pack(number, time.time_ns(), os.getpid()))

    async def line_up(self) -> None:
        """Say that this worker could take jobs now, and return when all may."""
        self.write(_READY)
        while not self._count(_GO):  # noqa: ASYNC110 (another process says it)
            await asyncio.sleep(_WATCH_S)

    def lined_up(self) -> int:
        """Return how many workers have lined up."""
        return self._count(_READY)

    def let_go(self) -> None:
        """Let the workers take jobs."""
        self.write(_GO)

    def jobs(self) -> list[Mark]:
        """Return the beginnings of jobs so far, oldest first."""
        return [mark for mark in self._all() if mark.number >= 0]

    def close(self) -> None:
        """Close the file; it stays."""
        os.close(self._file)

    def _count(self, number: int) -> int:
        return sum(mark.number == number for mark in self._all())

    def _all(self) -> list[Mark]:
        return [Mark(*fields) for fields in _MARK.iter_unpack(self._path.read_bytes())]
