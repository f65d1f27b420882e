"""EJAgent's journal in files: `JsonlSessionStorage` of ejagent-core, asked through its own API.

A journal to begin with is written as its append would have written it, without reading the file
before each record.
"""

import asyncio
import json
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import uuid4

from bench.conversation import TOOL, conversation
from bench.peers.answering import answer

_journal: Final[Any] = import_module("ejagent.session.journal")
_result: Final[Any] = import_module("ejagent.agent.result")
_storage: Final[Any] = import_module("ejagent.session.jsonl").JsonlSessionStorage
_Draft: Final[Any] = _journal.SessionRecordDraft

_OPEN_RUN: Final = "open-run"


class Journals:
    """Journals in one folder."""

    def __init__(self, folder: Path) -> None:
        self._store = _storage(folder)
        self._loop = asyncio.Runner()
        self._next: dict[str, Iterator[Any]] = {}

    def fill_messages(self, session: str, records: int, text: str) -> None:
        """Begin a journal with one run that goes on: its start, and messages of the model."""
        self._next[session] = _messages(session, text)
        self._write(session, records)

    def fill_conversation(self, session: str, records: int) -> None:
        """Begin a journal with as much of the conversation, five records a turn."""
        self._next[session] = _turns(session)
        self._write(session, records)

    def append(self, session: str, times: int) -> list[float]:
        """Return how many seconds each of the next `times` appends took."""
        took: list[float] = []
        for draft in islice(self._next[session], times):
            began = time.perf_counter()
            self._loop.run(self._store.append(draft))
            took.append(time.perf_counter() - began)
        return took

    def load(self, session: str, times: int) -> list[float]:
        """Return how many seconds each of `times` loads took."""
        took: list[float] = []
        for _ in range(times):
            began = time.perf_counter()
            self._loop.run(self._store.load(session))
            took.append(time.perf_counter() - began)
        return took

    def _write(self, session: str, records: int) -> None:
        write_journal(self._store, session, islice(self._next[session], records))


def write_journal(store: Any, session: str, drafts: Iterable[Any]) -> None:
    """Write a journal with one line for each record, as `append` writes it."""
    parent: str | None = None
    path: Path = store._path_for(session)
    with path.open("w") as file:
        for revision, draft in enumerate(drafts, 1):
            record_id = uuid4().hex
            record = _journal.SessionRecord(
                record_id=record_id,
                parent_id=parent,
                branch_id=draft.branch_id,
                revision=revision,
                session_id=draft.session_id,
                agent_id=draft.agent_id,
                sequence=draft.sequence,
                kind=draft.kind,
                data=draft.data,
            )
            written = record.to_dict()
            file.write(json.dumps(written, separators=(",", ":"), sort_keys=True) + "\n")
            parent = record_id


def _messages(session: str, text: str) -> Iterator[Any]:
    said = {"session_id": session, "agent_id": "bench", "run_id": _OPEN_RUN}
    yield _Draft.run_started(**said, sequence=1, task="bench")
    for sequence in count(2):
        message = {"role": "assistant", "content": text}
        yield _Draft.message_appended(**said, sequence=sequence, message=message)


def _turns(session: str) -> Iterator[Any]:
    sequence = count(1)
    for number, turn in enumerate(conversation()):
        said = {"session_id": session, "agent_id": "bench", "run_id": f"run-{number}"}
        call = {"name": TOOL, "arguments": turn.arguments}
        tool_calls = [{"id": turn.call_id, "type": "function", "function": call}]
        yield _Draft.run_started(**said, sequence=next(sequence), task=turn.user)
        for message in (
            {"role": "assistant", "content": turn.words, "tool_calls": tool_calls},
            {"role": "tool", "tool_call_id": turn.call_id, "content": turn.result},
            {"role": "assistant", "content": turn.answer},
        ):
            yield _Draft.message_appended(**said, sequence=next(sequence), message=message)
        result = _result.AgentRunResult(
            _result.RunStatus("completed"),
            _result.StopReason("text_response"),
            turns=2,
            output=turn.answer,
        )
        yield _Draft.run_finished(**said, sequence=next(sequence), result=result)


def main() -> None:
    """Answer until standard input ends."""
    with TemporaryDirectory(prefix="bench-ejagent-") as folder:
        journals = Journals(Path(folder))
        answer(
            {
                "fill_messages": journals.fill_messages,
                "fill_conversation": journals.fill_conversation,
                "append": journals.append,
                "load": journals.load,
            }
        )


if __name__ == "__main__":
    main()
