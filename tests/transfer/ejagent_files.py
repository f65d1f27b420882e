"""Journals of EJAgent, line by line, as tests want them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "ejagent"
GOLDEN = DATA / "dd56de4137951d9c92681b03416ec15f886b4482a27e3a517d32f085244cbe5d.jsonl"
SIMAGENTPLG = DATA / "9449d8ad067a035fa76f127bf4bb5ba0db779cebddc6548c6cc52f51441edb9d.jsonl"

Json = dict[str, Any]

SUMMARY: Json = {
    "content": "SUM",
    "source": "m",
    "history_start_index": 1,
    "first_kept_index": 3,
    "summarized_message_count": 2,
    "tokens_before": 60,
}


def usage(**changes: Any) -> Json:
    counts: Json = {
        "input_tokens": 10,
        "output_tokens": 5,
        "total_tokens": 15,
        "request_count": 1,
        "reported_request_count": 1,
        "cache_read_tokens": None,
        "cache_write_tokens": None,
        "reasoning_tokens": None,
    }
    return counts | changes


def result(**changes: Any) -> Json:
    ended: Json = {
        "status": "completed",
        "stop_reason": "text_response",
        "turns": 2,
        "output": "ok",
        "error": None,
        "usage": usage(),
    }
    return ended | changes


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def assistant(text: str | None, *call_ids: str) -> Json:
    calls = [
        {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for call_id in call_ids
    ]
    return {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})


def tool(call_id: str, text: str = "done") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def document(session_id: str = "s", agent_id: str | None = "a", **parts: Any) -> Json:
    session: Json = {"session_id": session_id, "agent_id": agent_id}
    session |= {"entries": [], "runs": [], "compactions": []} | parts
    return {"schema_version": 1, "session": session}


def run_of(run_id: str, **changes: Any) -> Json:
    run: Json = {"run_id": run_id, "task": "t", "intent": "task", "start_sequence": 1}
    return run | {"finish_sequence": 9, "result": result()} | changes


class FileBuilder:
    """A journal that is built line by line; each line goes on from the head of its branch."""

    def __init__(self, session_id: str = "s", agent_id: str = "a") -> None:
        self.session_id = session_id
        self.agent_id = agent_id
        self.lines: list[Json] = []
        self._heads: dict[str, str] = {}

    def add(self, kind: str, sequence: int = 0, branch: str = "main", **data: Any) -> str:
        """Add a line; return its record id."""
        record_id = f"{len(self.lines) + 1:032x}"
        parent = self._heads.get(branch)
        if kind == "branch_created":
            parent = data["base_record_id"]
            data = {"source_head_id": self._heads[data["source_branch_id"]]} | data
        self.lines.append(
            {
                "journal_schema_version": 1,
                "record_id": record_id,
                "parent_id": parent,
                "branch_id": branch,
                "revision": len(self.lines) + 1,
                "session_id": self.session_id,
                "agent_id": self.agent_id,
                "sequence": sequence,
                "type": kind,
                "data": data,
            }
        )
        self._heads[branch] = record_id
        return record_id

    def branch(self, name: str, base: str | None, source: str = "main", **data: Any) -> str:
        """Add a branch, by fork unless `data` says otherwise."""
        data = {"intent": "fork", "base_record_id": base, "source_branch_id": source} | data
        return self.add("branch_created", branch=name, **data)

    @property
    def encoded(self) -> list[bytes]:
        return encoded(self.lines)


def encoded(lines: Iterable[Json]) -> list[bytes]:
    """Return lines as EJAgent writes them."""
    texts = (
        json.dumps(line, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        for line in lines
    )
    return [f"{text}\n".encode() for text in texts]


def sample() -> FileBuilder:
    """Return a journal with every kind of line, of session `s` and agent `a`.

    Its lines: 1 run r1 begins, 2 calls a tool, 3 its result, 4 steering, 5 the answer, 6 r1 ends,
    7 compaction op1, 8 branch `side` from 6, 9 to 11 run r2 goes on there, 12 a checkpoint on
    main, 13 branch `again` from nothing, 14 branch `late` from 12.
    """
    file = FileBuilder()
    file.add("run_started", 1, run_id="r1", task="first")
    file.add("message_appended", 3, run_id="r1", message=assistant(None, "c1"))
    file.add("messages_appended", 5, run_id="r1", messages=[tool("c1")])
    file.add("steering_applied", 8, run_id="r1", input_id="i1", content="steer", target_turn=2)
    file.add("message_appended", 10, run_id="r1", message=assistant("ok"))
    ended = file.add("run_finished", 12, run_id="r1", result=result())
    kept = [{"role": "system", "content": "SUM"}, assistant("ok")]
    file.add("compaction_applied", 2, operation_id="op1", summary=SUMMARY, messages=kept)
    file.branch("side", ended, intent="rollback")
    file.add("run_continued", 1, branch="side", run_id="r2")
    file.add("message_appended", 3, branch="side", run_id="r2", message=assistant("more"))
    file.add("run_finished", 5, branch="side", run_id="r2", result=result())
    entry = {"run_id": "r9", "sequence": 1, "message": user("imported")}
    compaction = {"operation_id": "op9", "sequence": 3, "summary": SUMMARY, "messages": kept}
    file.add(
        "checkpoint",
        document=document(
            entries=[entry],
            runs=[run_of("r9")],
            compactions=[compaction | {"covered_entry_count": 0}],
        ),
    )
    file.branch("again", None, intent="retry", retried_run_id="r1")
    file.branch("late", "0" * 31 + "c")
    return file
