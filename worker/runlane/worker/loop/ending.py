"""How the loop says that a run is over."""

from msgspec import Struct

from runlane.journal.projection import Projection
from runlane.journal.wire.records import AnyBody, MessageAppended
from runlane.journal.wire.results import AgentRunResult, RunUsage, StopReason


class Ending(Struct, frozen=True):
    """Why a run ends, and what is to be journaled together with its end.

    Attributes:
        stop_reason: Why.
        output: The final text, or the output of a completing tool.
        error: What went wrong, for people.
        last: Records that belong before the end, oldest first.
        turn: The turn that ends with the run; 0 if none is under way.
        unanswered: Whether a model request was sent to which no response came.
    """

    stop_reason: StopReason
    output: str | None = None
    error: str | None = None
    last: tuple[AnyBody, ...] = ()
    turn: int = 0
    unanswered: bool = False

    def result(self, projection: Projection) -> AgentRunResult:
        """Return the result of the run that is open in `projection`, which lacks `last` yet."""
        run = projection.open_run
        turns, usage = (run.turn, run.usage) if run else (0, RunUsage())
        for body in self.last:
            if isinstance(body, MessageAppended):
                turns, usage = body.turn, usage.plus(body.usage)
        return AgentRunResult(
            status=self.stop_reason.status,
            stop_reason=self.stop_reason,
            turns=turns,
            output=self.output,
            error=self.error,
            usage=usage.plus(None) if self.unanswered else usage,
        )
