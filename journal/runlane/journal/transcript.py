"""Whether a model can read a transcript: each tool call has one result, right behind it. Pure.

Providers refuse a request in which a call has no result, or a result no call. Call ids are matched
within one response: providers repeat them in others.
"""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    ModelToolCall,
    ToolMessage,
)

NO_RESULT = "there is no result of this call; whether it happened is unknown"
ABANDONED_CALL = "the run ended before this call had a result; whether it happened is unknown"


class TranscriptFaultCode(StrEnum):
    """What is wrong at one place."""

    MISSING_TOOL_RESULT = "missing_tool_result"
    DUPLICATE_TOOL_USE = "duplicate_tool_use"
    RESULT_ORDER_MISMATCH = "result_order_mismatch"
    DUPLICATE_TOOL_RESULT = "duplicate_tool_result"
    TOOL_RESULT_BEFORE_USE = "tool_result_before_use"
    UNEXPECTED_TOOL_RESULT = "unexpected_tool_result"
    ORPHAN_TOOL_RESULT = "orphan_tool_result"


class TranscriptFault(Struct, frozen=True):
    """One thing that keeps a model from reading a transcript.

    Attributes:
        code: What it is.
        index: Place of the message.
        tool_call_id: The call that it is about.
    """

    code: TranscriptFaultCode
    index: int
    tool_call_id: str


def faults(messages: Sequence[ContextMessage], start: int = 0) -> list[TranscriptFault]:
    """Return what is wrong from the message at `start` on, in their order."""
    found: list[TranscriptFault] = []
    first_use: dict[str, int] | None = None
    index = start
    while index < len(messages):
        message = messages[index]
        calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        if not calls and not isinstance(message, ToolMessage):
            index += 1
            continue
        first = index + 1 if calls else index
        results = _results_at(messages, first)
        if not _fits(calls, results):
            first_use = _first_uses(messages) if first_use is None else first_use
            found += _faults_of_calls(calls, results, index)
            found += _faults_of_results(calls, results, first, first_use)
        index = first + len(results)
    return found


def repaired(messages: Sequence[ContextMessage], start: int = 0) -> list[ContextMessage]:
    """Return a transcript without faults; what is sound stays as it is, in its order.

    A result moves right behind its call; a call without one gets a result that says so; a result
    without a call, a second one and a second call of one id are left out. Of two results the one
    that only says that there is none gives way.
    """
    rest = messages[start:]
    results = _results_by_use(rest)
    sound: list[ContextMessage] = list(messages[:start])
    for place, message in enumerate(rest):
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            sound.append(message)
            continue
        first_of_id: dict[str, ModelToolCall] = {}
        for call in message.tool_calls:
            first_of_id.setdefault(call.id, call)
        calls = tuple(first_of_id.values())
        whole = len(calls) == len(message.tool_calls)
        sound.append(message if whole else AssistantMessage(message.content, calls))
        sound += [results.get((place, call.id)) or missing_result(call) for call in calls]
    return sound


def missing_result(call: ModelToolCall, why: str = NO_RESULT) -> ToolMessage:
    """Return what stands for the result of a call that has none."""
    return ToolMessage(tool_call_id=call.id, tool_name=call.name, content=why, is_error=True)


def _results_at(messages: Sequence[ContextMessage], place: int) -> list[ToolMessage]:
    results: list[ToolMessage] = []
    while place < len(messages) and isinstance(message := messages[place], ToolMessage):
        results.append(message)
        place += 1
    return results


def _fits(calls: Sequence[ModelToolCall], results: Sequence[ToolMessage]) -> bool:
    wanted = [call.id for call in calls]
    given = [result.tool_call_id for result in results]
    return wanted == given and len(set(wanted)) == len(wanted)


def _faults_of_calls(
    calls: Sequence[ModelToolCall], results: Sequence[ToolMessage], index: int
) -> list[TranscriptFault]:
    wanted = [call.id for call in calls]
    answered = dict.fromkeys(result.tool_call_id for result in results)
    given = [call_id for call_id in answered if call_id in wanted]
    found: list[TranscriptFault] = []
    for place, call_id in enumerate(wanted):
        if call_id in wanted[:place]:
            found.append(_fault("duplicate_tool_use", index, call_id))
        elif call_id not in given:
            found.append(_fault("missing_tool_result", index, call_id))
    in_order = [call_id for call_id in dict.fromkeys(wanted) if call_id in given]
    if given != in_order:
        found.append(_fault("result_order_mismatch", index, given[0]))
    return found


def _faults_of_results(
    calls: Sequence[ModelToolCall],
    results: Sequence[ToolMessage],
    first: int,
    first_use: dict[str, int],
) -> list[TranscriptFault]:
    wanted = {call.id for call in calls}
    found: list[TranscriptFault] = []
    seen: set[str] = set()
    for index, result in enumerate(results, first):
        call_id = result.tool_call_id
        if call_id not in wanted:
            found.append(_fault(_stray(first_use.get(call_id), index), index, call_id))
        elif call_id in seen:
            found.append(_fault("duplicate_tool_result", index, call_id))
        seen.add(call_id)
    return found


def _stray(first_use: int | None, index: int) -> str:
    """Return what a result is that does not stand behind its call."""
    if first_use is None:
        return "orphan_tool_result"
    return "unexpected_tool_result" if first_use < index else "tool_result_before_use"


def _first_uses(messages: Sequence[ContextMessage]) -> dict[str, int]:
    uses: dict[str, int] = {}
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                uses.setdefault(call.id, place)
    return uses


def _results_by_use(messages: Sequence[ContextMessage]) -> dict[tuple[int, str], ToolMessage]:
    """Return the result of each call: of those before the next call of that id, the first."""
    found: dict[tuple[int, str], ToolMessage] = {}
    last_use: dict[str, int] = {}
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            last_use |= {call.id: place for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.tool_call_id in last_use:
            use = last_use[message.tool_call_id], message.tool_call_id
            if use not in found or (_stands_in(found[use]) and not _stands_in(message)):
                found[use] = message
    return found


def _stands_in(result: ToolMessage) -> bool:
    return result.is_error and result.content in (NO_RESULT, ABANDONED_CALL)


def _fault(code: str, index: int, tool_call_id: str) -> TranscriptFault:
    return TranscriptFault(TranscriptFaultCode(code), index, tool_call_id)
