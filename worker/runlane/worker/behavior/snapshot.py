"""What a hook sees: a run as it stands, which it cannot change."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast, overload

from msgspec import Struct
from msgspec.structs import force_setattr

from runlane.journal.wire.messages import AssistantMessage, ContextMessage
from runlane.journal.wire.results import RunUsage
from runlane.worker.behavior.arguments import read_only
from runlane.worker.tools import ToolEffect


class TurnSnapshot(Struct, frozen=True, kw_only=True):
    """A run at one moment.

    Attributes:
        agent_id: The agent's name.
        run_id: The run.
        session_id: Its session.
        attempt: 1, and one more after each crash or hand-back.
        turn: The turn under way, or the last one; 0 before the first.
        task: What the run was asked to do; None for one that continues.
        response: The response of the turn; None before it is there.
        usage: Tokens of the run so far.
        messages: The transcript as it is journaled, oldest first. A list that is given may only
            grow afterwards: it is not copied, and what comes later is not seen.
    """

    agent_id: str
    run_id: str
    session_id: str
    attempt: int
    turn: int
    task: str | None
    response: AssistantMessage | None
    usage: RunUsage
    messages: Sequence[ContextMessage]

    def __post_init__(self) -> None:
        if isinstance(self.messages, list):
            force_setattr(self, "messages", _SoFar(self.messages))


class HookedCall(Struct, frozen=True, kw_only=True):
    """A tool call as a hook sees it.

    Attributes:
        tool_name: The tool.
        arguments: What it is called with: a copy, whose objects are read-only.
        tool_call_id: The provider's id of the call: data only, since providers repeat it.
        operation_key: `<run_id>:<turn>:<index>`, the same in every attempt.
        effect: What a second call would do.
    """

    tool_name: str
    arguments: Mapping[str, Any]
    tool_call_id: str
    operation_key: str
    effect: ToolEffect

    def __post_init__(self) -> None:
        force_setattr(self, "arguments", read_only(self.arguments))


class _SoFar(Sequence[ContextMessage]):
    """A list that grows, as it was at one moment; slices are tuples."""

    __slots__ = ("_length", "_messages")

    def __init__(self, messages: Sequence[ContextMessage]) -> None:
        self._messages = messages
        self._length = len(messages)

    @overload
    def __getitem__(self, index: int) -> ContextMessage: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ContextMessage, ...]: ...
    def __getitem__(self, index: int | slice) -> ContextMessage | tuple[ContextMessage, ...]:
        places = range(self._length)[index]
        if isinstance(places, int):
            return self._messages[places]
        return tuple(self._messages[place] for place in places)

    def __iter__(self) -> Iterator[ContextMessage]:
        return islice(self._messages, self._length)

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list | tuple | _SoFar) and tuple(self) == tuple(
            cast("Sequence[object]", other)
        )

    __hash__ = None  # type: ignore[assignment]
