"""Foreign transcripts made fit for a provider: behind each tool call its result, and no other."""

from collections import deque
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from runlane.journal.transcript import ABANDONED_CALL, missing_result
from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    ModelToolCall,
    ToolMessage,
)


def abandoned(call: ModelToolCall) -> ToolMessage:
    """Return the result of a call that never had one."""
    return missing_result(call, ABANDONED_CALL)


class _Response:
    """A model response and the results of its calls, in the order in which they came."""

    def __init__(self, message: AssistantMessage) -> None:
        self.message = message
        self.results: list[ToolMessage] = []
        self._waiting: dict[str, deque[int]] = {}
        for place, call in enumerate(message.tool_calls):
            self._waiting.setdefault(call.id, deque()).append(place)

    @property
    def unanswered(self) -> list[ModelToolCall]:
        places = sorted(place for places in self._waiting.values() for place in places)
        return [self.message.tool_calls[place] for place in places]

    def answer(self, result: ToolMessage) -> bool:
        """Take a result; return whether further calls of that id wait for theirs."""
        places = self._waiting[result.tool_call_id]
        call = self.message.tool_calls[places.popleft()]
        self.results.append(replace(result, tool_name=result.tool_name or call.name))
        return bool(places)


class Transcript:
    """Messages, each tool result behind the response that called, wherever the source had it.

    Attributes:
        dropped: Results of calls that nobody made.
    """

    def __init__(self, messages: Iterable[ContextMessage] = ()) -> None:
        self.dropped = 0
        self._messages: list[ContextMessage | _Response] = []
        self._last: _Response | None = None
        self._waiting: dict[str, list[_Response]] = {}
        for message in messages:
            self._add(message)

    @property
    def unanswered(self) -> list[ModelToolCall]:
        """The calls of the last response that have no result."""
        return self._last.unanswered if self._last else []

    def messages(self, *, run_open: bool = False) -> Iterator[ContextMessage]:
        """Return the messages; calls without a result get one that says so.

        Args:
            run_open: Whether the results of the last response may still come.
        """
        for message in self._messages:
            if not isinstance(message, _Response):
                yield message
                continue
            yield message.message
            yield from message.results
            if not (run_open and message is self._last):
                yield from map(abandoned, message.unanswered)

    def _add(self, message: ContextMessage) -> None:
        if isinstance(message, ToolMessage):
            self._answer(message)
        elif isinstance(message, AssistantMessage):
            self._last = _Response(message)
            self._messages.append(self._last)
            for call_id in {call.id for call in message.tool_calls}:
                self._waiting.setdefault(call_id, []).append(self._last)
        else:
            self._messages.append(message)

    def _answer(self, result: ToolMessage) -> None:
        """Put a result behind its call, of the latest response first: providers repeat ids."""
        responses = self._waiting.get(result.tool_call_id)
        if not responses:
            self.dropped += 1
        elif not responses[-1].answer(result):
            responses.pop()
