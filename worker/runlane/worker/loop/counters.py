"""What middlewares and tools count for a run: it is journaled with the calls that they count."""

from collections.abc import Mapping
from typing import Final, cast

from runlane.journal.errors import InvalidInputError
from runlane.journal.projection import OpenRun
from runlane.journal.wire.records import ToolStarted

NAME_BYTES: Final = range(1, 129)


class Counters:
    """The counters of a run, while the calls of one response are made.

    Args:
        run: The run, with what is journaled so far.
        interrupted: Calls that an earlier attempt began, by place.
    """

    def __init__(self, run: OpenRun, interrupted: Mapping[int, ToolStarted]) -> None:
        self._totals = dict(run.counters)
        self._numbers: dict[int, dict[str, int]] = {}
        self._journaled = {index: {*body.counted} for index, body in interrupted.items()}

    def count(self, index: int, name: str) -> int:
        """Count a call under a name, once; return how many were counted, this one included.

        Raises:
            InvalidInputError: The name is no text, or too long.
        """
        given = cast("object", name)
        if (
            not isinstance(given, str)
            or not given.isprintable()
            or len(given.encode()) not in NAME_BYTES
        ):
            raise InvalidInputError("a counter's name is printable text of 1 to 128 bytes of UTF-8")
        numbers = self._numbers.setdefault(index, {})
        if name not in numbers:
            if name not in self._journaled.get(index, set()):
                self._totals[name] = self._totals.get(name, 0) + 1
            numbers[name] = self._totals.get(name, 1)
        return numbers[name]

    def take(self, index: int) -> tuple[str, ...]:
        """Return the names that are to be journaled with the next record of a call."""
        journaled = self._journaled.setdefault(index, set())
        new = self._numbers.get(index, {}).keys() - journaled
        journaled |= new
        return tuple(sorted(new))
