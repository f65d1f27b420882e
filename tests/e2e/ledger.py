"""A file outside of Redis that says which tool calls were really executed."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct


class Execution(Struct, frozen=True, kw_only=True):
    """One execution of one tool call, by one process."""

    tool: str
    key: str
    attempt: int
    pid: int
    session: str


class Ledger(Struct, frozen=True):
    """The file, for the processes that write it and for the test that reads it."""

    path: Path

    def enter(self, execution: Execution) -> None:
        """Append one line, in one write."""
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, msgspec.json.encode(execution) + b"\n")
        finally:
            os.close(file)

    def all(self, tool: str = "", *, session: str = "", key: str = "") -> list[Execution]:
        """Return the executions so far, oldest first; empty words match everything."""
        lines = self.path.read_bytes().splitlines() if self.path.exists() else []
        found = [msgspec.json.decode(line, type=Execution) for line in lines]
        return [
            each
            for each in found
            if tool in ("", each.tool) and session in ("", each.session) and key in ("", each.key)
        ]
