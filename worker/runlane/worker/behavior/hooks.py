"""The moments of a run at which an application may look in, and have a say."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from runlane.journal.wire.messages import ContextMessage
from runlane.journal.wire.results import AgentRunResult
from runlane.worker.behavior.decision import BehaviorDecision
from runlane.worker.behavior.snapshot import HookedCall, TurnSnapshot
from runlane.worker.control import CancellationToken
from runlane.worker.tools import ToolResult


class Phase(Struct, frozen=True):
    """A moment of a run.

    Attributes:
        shown: What hooks are shown there, besides the run's `cancellation`.
        fields: The fields of a decision that it knows.
        last_word: Those of them after which no further hook is asked.
    """

    shown: tuple[str, ...]
    fields: frozenset[str] = frozenset()
    last_word: frozenset[str] = frozenset({"action"})


_STOP: Final = frozenset({"action", "output", "reason"})
_STEER: Final = _STOP | {"steer"}
_RESULT: Final = _STEER | {"denied", "prefix"}

PHASES: Final[Mapping[str, Phase]] = {
    "on_run_start": Phase(("snapshot",), _STEER),
    "before_model": Phase(("snapshot", "messages"), _STOP | {"messages"}),
    "after_model": Phase(("snapshot",), _STEER),
    "before_tool": Phase(
        ("snapshot", "call"), _STEER | {"denied", "arguments"}, frozenset({"action", "denied"})
    ),
    "after_tool": Phase(("snapshot", "call", "result"), _RESULT),
    "after_failed_tool": Phase(("snapshot", "call", "result"), _RESULT),
    "after_turn": Phase(("snapshot",), _STEER),
    "on_run_end": Phase(("snapshot", "result")),
}
"""Each moment of a run, by the name of the method that looks at it."""


class BehaviorHook:
    """What a hook may have; it need not be a subclass, and any method may be missing.

    All methods are `async`, and get the run's `cancellation`. One that returns None leaves things
    as they are. After a crash the same moment may come a second time, as long as nothing that came
    after it is journaled.
    """

    async def on_run_start(
        self, snapshot: TurnSnapshot, *, cancellation: CancellationToken
    ) -> BehaviorDecision | None:
        """Before the first turn."""

    async def before_model(
        self,
        snapshot: TurnSnapshot,
        messages: tuple[ContextMessage, ...],
        *,
        cancellation: CancellationToken,
    ) -> BehaviorDecision | None:
        """Before each model request; `messages` is what it is to carry of the conversation."""

    async def after_model(
        self, snapshot: TurnSnapshot, *, cancellation: CancellationToken
    ) -> BehaviorDecision | None:
        """After each response, before a tool is called or the run ends with it."""

    async def before_tool(
        self, snapshot: TurnSnapshot, call: HookedCall, *, cancellation: CancellationToken
    ) -> BehaviorDecision | None:
        """Before each tool call that can be made."""

    async def after_tool(
        self,
        snapshot: TurnSnapshot,
        call: HookedCall,
        result: ToolResult,
        *,
        cancellation: CancellationToken,
    ) -> BehaviorDecision | None:
        """After a tool call that gave a result, before the result is journaled."""

    async def after_failed_tool(
        self,
        snapshot: TurnSnapshot,
        call: HookedCall,
        result: ToolResult,
        *,
        cancellation: CancellationToken,
    ) -> BehaviorDecision | None:
        """After a tool call that failed, was stopped or has an unknown outcome."""

    async def after_turn(
        self, snapshot: TurnSnapshot, *, cancellation: CancellationToken
    ) -> BehaviorDecision | None:
        """After a turn that does not end the run; all of it is journaled."""

    async def on_run_end(
        self, snapshot: TurnSnapshot, result: AgentRunResult, *, cancellation: CancellationToken
    ) -> BehaviorDecision | None:
        """When the run is about to end; there is nothing to decide any more."""
