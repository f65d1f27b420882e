"""What came of a tool call, and what it means for those after it."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from runlane.journal.wire.results import StopReason
from runlane.worker.behavior import BehaviorDecision
from runlane.worker.control import AgentCancelledError
from runlane.worker.tools import ToolResult

NEWS: Final = "there is news to read first"


class Verdict(Struct, frozen=True):
    """What ends a turn before all of its calls are made.

    Attributes:
        reason: Why the run ends with it; None if only the turn does.
        output: The output of the run in that case.
        error: Its error.
        steer: What hooks have to say to the model before anything else is done.
    """

    reason: StopReason | None = None
    output: str | None = None
    error: str | None = None
    steer: tuple[str, ...] = ()

    @classmethod
    def aborted(cls, error: AgentCancelledError) -> "Verdict":
        """Return that the run was told to stop while a hook was asked."""
        return cls(StopReason.EXTERNAL_ABORT, error=error.reason)

    @classmethod
    def of(cls, decision: BehaviorDecision | None) -> "Verdict | None":
        """Return what hooks decided about the turn; None if it goes on."""
        if decision is None or not (decision.stops or decision.steer):
            return None
        reason = StopReason.BEHAVIOR_STOP if decision.stops else None
        return cls(reason, decision.output, steer=decision.steer)

    @classmethod
    def combined(cls, verdicts: Sequence["Verdict"]) -> "Verdict | None":
        """Return what several calls mean together, in source order.

        The first that ends the run says why; all that is to be said to the model is said.
        """
        if not verdicts:
            return None
        first = next((each for each in verdicts if each.reason is not None), verdicts[0])
        return replace(first, steer=tuple(text for each in verdicts for text in each.steer))


class Settled(Struct, frozen=True):
    """What came of a call.

    Attributes:
        result: What the model reads.
        verdict: What it means for the calls after it, if not what the result's control says.
    """

    result: ToolResult
    verdict: Verdict | None = None
