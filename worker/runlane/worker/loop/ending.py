"""How the loop says that a run is over."""

from msgspec import Struct

from runlane.journal.wire.records import AnyBody
from runlane.journal.wire.results import AgentRunResult, RunUsage, StopReason


class Ending(Struct, frozen=True):
    """Why a run ends, and what is to be journaled together with its end.

    Attributes:
        stop_reason: Why.
        output: The final text, or the output of a completing tool.
        error: What went wrong, for people.
        last: Records that belong before the end, oldest first.
        turn: The turn that ends with the run; 0 if none is under way.
    """

    stop_reason: StopReason
    output: str | None = None
    error: str | None = None
    last: tuple[AnyBody, ...] = ()
    turn: int = 0

    def result(self, *, turns: int, usage: RunUsage) -> AgentRunResult:
        """Return the result of the run."""
        return AgentRunResult(
            status=self.stop_reason.status,
            stop_reason=self.stop_reason,
            turns=turns,
            output=self.output,
            error=self.error,
            usage=usage,
        )
