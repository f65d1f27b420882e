"""The script that the user's own message directs.

Directives stand anywhere in the last user message, and are carried out from left to right. `]]`
ends one, except within JSON:

    [[tool NAME {JSON}]]                  one turn that calls one tool; arguments may be left out
    [[tools NAME {JSON} ; NAME2 {JSON}]]  one turn that calls several
    [[fault 500]]                         HTTP status; every further request gets it again
    [[fault 429 2]]                       the same with `Retry-After: 2`
    [[fault 400 CODE]]                    the same with an error code
    [[fault reset]]                       or truncate, error, hang: see `StreamFault`
    [[delay 0.5]]                         seconds before the next of the above, or the final text
    [[pace 0.05]]                         seconds between chunks of it
    [[think TEXT]]                        reasoning that precedes it
    [[say TEXT]]                          the final text, wherever it stands

How many turns are done is the number of assistant messages with tool calls after the last user
message. When all are, the reply is the `say` text, else a summary of the tool results, else an
echo. Without a new user message since a final text, the reply is `continued: ` and that text.
"""

import json
import re
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, Final, cast, get_args

import msgspec
from msgspec.structs import replace

from runlane.worker.testing.conversation import last_user_index, last_user_text, text_of
from runlane.worker.testing.script import ChatRequest, HttpFault, Reply, StreamFault, ToolCall

_SUMMARY_CHARS_MAX: Final = 200

_OPENING: Final = re.compile(r"\[\[(\w+)\s*")
_TOOL_NAME: Final = re.compile(r"[\s;]*([\w-]+)\s*")
_scan_json: Final = json.JSONDecoder().raw_decode


def directives(request: ChatRequest) -> Reply:
    """Carry out the directives of the last user message.

    Raises:
        ValueError: A directive is malformed.
    """
    turns, final = _parse(said := last_user_text(request.messages))
    since_user = request.messages[last_user_index(request.messages) + 1 :]
    spoken = [message for message in since_user if message["role"] != "system"]
    if spoken and spoken[-1]["role"] == "assistant" and not spoken[-1].get("tool_calls"):
        return Reply(text=f"continued: {text_of(spoken[-1])}")
    if (done := _turns_done(spoken)) < len(turns):
        return _with_ids(turns[done], request.messages)
    return final if final.text is not None else replace(final, text=_closing(said, spoken))


def _turns_done(messages: list[dict[str, Any]]) -> int:
    return sum(bool(message.get("tool_calls")) for message in messages)


def _closing(said: str, spoken: list[dict[str, Any]]) -> str:
    results = [text_of(m)[:_SUMMARY_CHARS_MAX] for m in spoken if m["role"] == "tool"]
    return f"results: {' | '.join(results)}" if results else f"echo: {said}"


def _with_ids(turn: Reply, messages: list[dict[str, Any]]) -> Reply:
    """Give calls ids that are unique in the conversation and the same at every retry."""
    turn_number = _turns_done(messages)
    calls = (replace(c, id=f"call_{turn_number}_{n}") for n, c in enumerate(turn.tool_calls))
    return replace(turn, tool_calls=tuple(calls))


def _parse(said: str) -> tuple[list[Reply], Reply]:
    """Return the turns that end in tools or a fault, and what is known of the final reply."""
    turns: list[Reply] = []
    pending, text = Reply(), None
    for verb, rest in _directives(said):
        if verb == "say":
            text = rest
        elif verb in _SETTINGS:
            pending = _SETTINGS[verb](pending, rest)
        elif verb in ("tool", "tools"):
            turns.append(replace(pending, tool_calls=tuple(_calls(rest))))
            pending = Reply()
        elif verb == "fault":
            turns.append(replace(pending, fault=_fault(rest), text="partial answer"))
            pending = Reply()
        else:
            raise ValueError(f"unknown directive [[{verb} ...]]")
    return turns, replace(pending, text=text)


_SETTINGS: Final[MappingProxyType[str, Callable[[Reply, str], Reply]]] = MappingProxyType(
    {
        "delay": lambda reply, rest: replace(reply, delay_s=float(rest)),
        "pace": lambda reply, rest: replace(reply, chunk_delay_s=float(rest)),
        "think": lambda reply, rest: replace(reply, thinking=rest),
    }
)


def _directives(said: str) -> Iterator[tuple[str, str]]:
    """Yield verb and rest of each directive; `]]` inside JSON does not end one."""
    position = 0
    while match := _OPENING.search(said, position):
        position = _end(said, match.end(), verb=match[1])
        yield match[1], said[match.end() : position].strip()
        position += 2


def _end(said: str, position: int, *, verb: str) -> int:
    while not said.startswith("]]", position):
        if position >= len(said):
            raise ValueError(f"directive [[{verb} ...]] has no end")
        is_json = verb in ("tool", "tools") and said[position] == "{"
        position = _scan_json(said, position)[1] if is_json else position + 1
    return position


def _calls(text: str) -> Iterator[ToolCall]:
    position = 0
    while match := _TOOL_NAME.match(text, position):
        position, arguments = match.end(), cast("object", {})
        if text.startswith("{", position):
            arguments, position = _scan_json(text, position)
        yield ToolCall(id="", name=match[1], arguments=msgspec.json.encode(arguments).decode())
    if text[position:].strip() or not position:
        raise ValueError(f"not NAME {{JSON}}: {text!r}")


def _fault(text: str) -> HttpFault | StreamFault:
    name, _, detail = text.partition(" ")
    if name in get_args(StreamFault):
        return cast("StreamFault", name)
    if not re.fullmatch("[45][0-9]{2}", name):
        raise ValueError(f"unknown fault {text!r}")
    if detail.isdecimal():
        return HttpFault(status=int(name), headers={"retry-after": detail})
    error = {"message": "scripted fault", "type": "scripted", "code": detail or None}
    return HttpFault(status=int(name), body={"error": error})
