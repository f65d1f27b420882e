"""What is said to a run while it goes on, as its worker hears of it."""

from collections.abc import Sequence

from runlane.journal.wire.control import ControlInput


class SteeringInbox:
    """The inputs of one attempt that the journal does not say anything of yet.

    News of them comes with each reply of the journal, and by a signal; some of it comes twice, and
    some late.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, ControlInput] = {}
        self._settled: set[str] = set()

    @property
    def waiting(self) -> tuple[ControlInput, ...]:
        """The inputs, oldest first."""
        return tuple(self._waiting.values())

    def add(self, given: ControlInput) -> None:
        """Take in what was just said, unless it is known."""
        if given.input_id not in self._settled:
            self._waiting.setdefault(given.input_id, given)

    def update(self, inputs: Sequence[ControlInput]) -> None:
        """Take in all that waited a moment ago, oldest first."""
        if not inputs:
            return
        later, self._waiting = self.waiting, {}
        for given in (*inputs, *later):
            self.add(given)

    def settle(self, input_ids: Sequence[str]) -> None:
        """Leave out what the journal tells the outcome of."""
        self._settled.update(input_ids)
        for input_id in input_ids:
            self._waiting.pop(input_id, None)
