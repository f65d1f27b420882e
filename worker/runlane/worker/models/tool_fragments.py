"""Tool calls, put together from the fragments that providers stream."""

from typing import Any

import msgspec

from runlane.journal.wire.messages import ModelToolCall


class _Call:
    def __init__(self, position: int) -> None:
        self.position = position
        self.id = ""
        self.name = ""
        self.arguments = ""


class ToolCallAssembly:
    """The tool calls of one response while it is streamed.

    Providers differ in what tells calls apart. A fragment belongs to the call at its index;
    without an index, to the call with its id; without either, to the latest call. A fragment
    with a name is a call of its own if its id is another than that of the call found, or if
    neither index nor id says so and the arguments of the call found are already complete.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._at_index: dict[int, _Call] = {}

    def add(self, *, index: int | None, call_id: str, name: str, arguments: str) -> None:
        """Take one fragment; an empty string says nothing new.

        A name that is repeated in full is kept once; a name in pieces is joined.
        """
        call = self._find(index, call_id)
        if call is None or (name and _is_another(call, index, call_id)):
            call = self._open(index)
        call.id = call.id or call_id
        if name != call.name:
            call.name += name
        call.arguments += arguments

    def finished(self) -> tuple[ModelToolCall, ...]:
        """Return the calls in the provider's order; one without an id gets `call_<position>`."""
        ordered = sorted(self._calls, key=lambda call: call.position)
        return tuple(
            ModelToolCall(id=call.id or f"call_{n}", name=call.name, arguments=call.arguments)
            for n, call in enumerate(ordered)
        )

    def _find(self, index: int | None, call_id: str) -> _Call | None:
        if index is not None:
            return self._at_index.get(index)
        if call_id:
            return next((call for call in self._calls if call.id == call_id), None)
        return self._calls[-1] if self._calls else None

    def _open(self, index: int | None) -> _Call:
        call = _Call(position=len(self._calls) if index is None else index)
        self._calls.append(call)
        if index is not None:
            self._at_index[index] = call
        return call


def arguments_text(arguments: Any) -> str:
    """Return arguments as JSON text, whether they came as text, as an object or not at all."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return msgspec.json.encode(arguments).decode()


def is_json(text: str) -> bool:
    """Return whether `text` is one complete JSON value."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _is_another(call: _Call, index: int | None, call_id: str) -> bool:
    if call_id and call.id:
        return call_id != call.id
    return index is None and not call_id and is_json(call.arguments)
