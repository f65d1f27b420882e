"""LangGraph's checkpoint savers: the one in memory and the one in SQLite.

`converse` drives a compiled graph (an agent node and a tool node, four supersteps a turn), which
saves each step before the next one begins. `fill` saves one state as the graph would, without a
history before it.
"""

import json
import sqlite3
import time
from importlib import import_module
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, TypedDict
from uuid import uuid4

from bench.conversation import TOOL, Turn, conversation
from bench.peers.answering import answer

_base: Final[Any] = import_module("langgraph.checkpoint.base")
_graph: Final[Any] = import_module("langgraph.graph")
_add_messages: Final[Any] = import_module("langgraph.graph.message").add_messages
_core: Final[Any] = import_module("langchain_core.messages")
_Serializer: Final[Any] = import_module("langgraph.checkpoint.serde.jsonplus").JsonPlusSerializer
_InMemorySaver: Final[Any] = import_module("langgraph.checkpoint.memory").InMemorySaver
_SqliteSaver: Final[Any] = import_module("langgraph.checkpoint.sqlite").SqliteSaver


class State(TypedDict):
    """What the graph carries: the whole transcript."""

    messages: Annotated[list[Any], _add_messages]


class CountingSerializer:
    """LangGraph's own serializer; it counts the bytes that a saver is handed."""

    def __init__(self) -> None:
        self._inner = _Serializer()
        self.bytes = 0

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        """Serialize, and count."""
        kind, data = self._inner.dumps_typed(value)
        self.bytes += len(data)
        return kind, data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialize."""
        return self._inner.loads_typed(data)


class Savers:
    """One saver of each kind; every conversation has a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "checkpoints.sqlite"
        self._database = sqlite3.connect(self._file, check_same_thread=False)
        self._serializer = CountingSerializer()
        self._savers: dict[str, Any] = {
            "langgraph_in_memory": _InMemorySaver(serde=self._serializer),
            "langgraph_sqlite": _SqliteSaver(self._database, serde=self._serializer),
        }
        self._savers["langgraph_sqlite"].setup()

    def fill(self, saver: str, thread: str, turns: int) -> None:
        """Save the state after so many turns."""
        checkpoint = _base.empty_checkpoint()
        messages = [message for turn in islice(conversation(), turns) for message in _said(turn)]
        checkpoint["channel_values"] = {"messages": messages}
        checkpoint["channel_versions"] = {"messages": 1}
        metadata: dict[str, Any] = {"source": "loop", "step": 4 * turns, "parents": {}}
        self._savers[saver].put(_config(thread), checkpoint, metadata, {"messages": 1})

    def get(self, saver: str, thread: str, times: int) -> list[float]:
        """Return how many seconds each of `times` calls of `get_tuple` took."""
        took: list[float] = []
        for _ in range(times):
            began = time.perf_counter()
            self._savers[saver].get_tuple(_config(thread))
            took.append(time.perf_counter() - began)
        return took

    def converse(self, saver: str, turns: int) -> dict[str, int]:
        """Hold the conversation; return the bytes that the saver was handed, and that it keeps."""
        graph = _compile(list(islice(conversation(), turns)), self._savers[saver])
        handed, kept = self._serializer.bytes, self._kept(saver)
        config = _config(uuid4().hex)
        for turn in islice(conversation(), turns):
            asked = {"messages": [_core.HumanMessage(turn.user)]}
            graph.invoke(asked, config, durability="sync")
        return {
            "sent_bytes": self._serializer.bytes - handed,
            "stored_bytes": self._kept(saver) - kept,
        }

    def _kept(self, saver: str) -> int:
        if saver == "langgraph_sqlite":
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return self._file.stat().st_size
        return self._serializer.bytes  # the one in memory keeps all that it is handed


def _said(turn: Turn) -> list[Any]:
    call = {"id": turn.call_id, "name": TOOL, "args": json.loads(turn.arguments)}
    return [
        _core.HumanMessage(turn.user),
        _core.AIMessage(turn.words, tool_calls=[call]),
        _core.ToolMessage(turn.result, tool_call_id=turn.call_id),
        _core.AIMessage(turn.answer),
    ]


def _compile(turns: list[Turn], saver: Any) -> Any:
    """Return a graph whose model and tool say what the conversation says."""

    def next_message(state: State) -> State:
        turn, place = divmod(len(state["messages"]), 4)
        return {"messages": [_said(turns[turn])[place]]}

    def after_agent(state: State) -> str:
        return "tool" if state["messages"][-1].tool_calls else str(_graph.END)

    graph = _graph.StateGraph(State)
    graph.add_node("agent", next_message)
    graph.add_node("tool", next_message)
    graph.add_edge(_graph.START, "agent")
    graph.add_conditional_edges("agent", after_agent)
    graph.add_edge("tool", "agent")
    return graph.compile(checkpointer=saver)


def _config(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


def main() -> None:
    """Answer until standard input ends."""
    with TemporaryDirectory(prefix="bench-langgraph-") as folder:
        savers = Savers(Path(folder))
        answer({"fill": savers.fill, "get": savers.get, "converse": savers.converse})


if __name__ == "__main__":
    main()
