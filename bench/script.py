"""What the model of every system says to measure its loop: at once, and only Python is needed.

A run is so many responses with so many calls of one tool each, and then a text. No two calls are
the same, since a loop may refuse to repeat one.
"""

from typing import Final

TOOL: Final = "look"
TASK: Final = "Look at everything."
RESULT: Final = "seen"
ANSWER: Final = "Done."
INPUT_TOKENS: Final = 8
OUTPUT_TOKENS: Final = 1


class Script:
    """The responses of one run after another."""

    def __init__(self) -> None:
        self._turns = 0
        self._calls = 0
        self._said = 0

    def begin(self, turns: int, calls: int) -> None:
        """Begin a run with so many tool turns, each with so many calls."""
        self._turns, self._calls = turns, calls

    def next(self) -> list[tuple[str, str]]:
        """Return id and arguments of each call of the next response; the last one has none."""
        if not self._turns:
            return []
        self._turns -= 1
        numbers = range(self._said, self._said + self._calls)
        self._said += self._calls
        return [(f"call-{number}", f'{{"number": {number}}}') for number in numbers]
