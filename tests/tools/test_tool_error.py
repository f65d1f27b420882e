"""What a tool raises on purpose, and what it raises by accident."""

import json
import logging
from typing import Any

import pytest
from tests.tools.support import execute, prepared, runtime_of

from runlane.journal.wire.records import ToolOutcome
from runlane.worker.tools import ToolError, tool


@tool
async def refuse(why: str) -> None:
    """Refuse."""
    raise ToolError(why)


@tool
def refuse_in_thread(why: str) -> None:
    """Refuse."""
    raise ToolError(why)


@tool
async def stumble(why: str) -> None:
    """Stumble."""
    raise LookupError(why)


@pytest.mark.parametrize("name", ["refuse", "refuse_in_thread"])
async def test_the_model_reads_the_message_of_a_tool_error_and_nobody_is_alarmed(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="runlane")
    async with runtime_of(refuse, refuse_in_thread) as runtime:
        result = await execute(runtime, prepared(runtime, name, why="no such order: 7"))
    payload: Any = json.loads(result.content)
    assert payload == {"status": "error", "tool": name, "error": "no such order: 7"}
    assert result.outcome is ToolOutcome.ERROR
    assert caplog.records == []


async def test_any_other_exception_is_logged_as_a_fault_of_the_tool(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with runtime_of(stumble) as runtime:
        result = await execute(runtime, prepared(runtime, "stumble", why="oops"))
    assert json.loads(result.content)["error"] == "oops"
    (logged,) = caplog.records
    assert logged.getMessage() == "tool stumble failed"
    assert logged.exc_info is not None
    assert "in stumble" in caplog.text
    assert "oops" not in caplog.text  # it may say what the arguments are
