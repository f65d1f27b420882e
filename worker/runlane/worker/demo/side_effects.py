"""Each side-effecting call: what the journal says of it, and what really happened."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from runlane.journal.wire.records import (
    AttemptCause,
    AttemptStarted,
    Record,
    ToolCompleted,
    ToolOutcome,
    ToolStarted,
)
from runlane.worker.demo.ledger import Entry, Mark
from runlane.worker.tools import ToolEffect


class Call(Struct, frozen=True, kw_only=True):
    """One call, by its operation key.

    Attributes:
        operation_key: The call.
        intended: Whether its intent is in the journal.
        outcome: The result in the journal; None if there is none.
        after_crash: Whether that result was written by an attempt that a crash made necessary.
        started: How often the side effect began.
        done: How often it came to its end.
    """

    operation_key: str
    intended: bool
    outcome: ToolOutcome | None
    after_crash: bool
    started: int
    done: int

    @property
    def unknown(self) -> bool:
        """Whether nobody can tell what became of it."""
        return self.outcome is ToolOutcome.UNKNOWN

    @property
    def exactly_once(self) -> bool:
        """Whether it succeeded, and happened once."""
        return self.outcome is ToolOutcome.OK and (self.started, self.done) == (1, 1)

    @property
    def violation(self) -> str:
        """What is wrong with it; empty if nothing is."""
        if self.started > 1:
            return f"happened {self.started} times"
        if not self.intended:
            return "happened without an intent in the journal"
        if self.outcome is None:
            return "has no result in the journal"
        if self.unknown and not self.after_crash:
            return "is called unknown though nothing crashed"
        if self.outcome is ToolOutcome.OK and not self.exactly_once:
            return f"is called done, and began {self.started} times, ended {self.done} times"
        return ""


def calls_of(records: Iterable[Record], ledger: Iterable[Entry]) -> list[Call]:
    """Return every side-effecting call that the journal or the ledger knows."""
    crashed: set[tuple[str, int]] = set()
    results: dict[str, ToolCompleted] = {}
    intents: dict[str, None] = {}
    for record in records:
        match record.body:
            case AttemptStarted(cause=AttemptCause.CRASH) as body:
                crashed.add((body.run_id, body.attempt))
            case ToolStarted(effect=ToolEffect.SIDE_EFFECTING) as body:
                intents[body.operation_key] = None
            case ToolCompleted() as body:
                results[f"{body.run_id}:{body.turn}:{body.index}"] = body
            case _:
                pass
    marks = Counter((entry.operation_key, entry.mark) for entry in ledger)
    keys = {**intents, **{key: None for key, _ in marks}}
    return [
        Call(
            operation_key=key,
            intended=key in intents,
            outcome=result.outcome if (result := results.get(key)) else None,
            after_crash=result is not None and (result.run_id, result.attempt) in crashed,
            started=marks[key, Mark.STARTED],
            done=marks[key, Mark.DONE],
        )
        for key in keys
    ]
