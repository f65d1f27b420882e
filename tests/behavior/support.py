"""What several tests of hooks need."""

from collections.abc import Sequence
from typing import Any

from runlane.journal.wire.messages import AssistantMessage, ContextMessage, UserMessage
from runlane.journal.wire.records import ToolOutcome
from runlane.journal.wire.results import AgentRunResult, RunStatus, RunUsage, StopReason
from runlane.worker.behavior import HookedCall, TurnSnapshot
from runlane.worker.tools import ToolEffect, ToolResult

TASK = UserMessage("do it")
RESULT = ToolResult("seen", ToolOutcome.OK)
SHOWN: dict[str, Any] = {
    "messages": (TASK,),
    "call": HookedCall(
        tool_name="pay",
        arguments={"amount": 1},
        tool_call_id="call_1",
        operation_key="run:1:0",
        effect=ToolEffect.SIDE_EFFECTING,
    ),
    "result": RESULT,
}
"""What hooks are shown besides the snapshot."""
ENDED = AgentRunResult(RunStatus.COMPLETED, StopReason.TEXT_RESPONSE)


def snapshot_of(messages: Sequence[ContextMessage] = (TASK,)) -> TurnSnapshot:
    return TurnSnapshot(
        agent_id="agent",
        run_id="run",
        session_id="session",
        attempt=1,
        turn=1,
        task="do it",
        response=AssistantMessage("hello"),
        usage=RunUsage(),
        messages=messages,
    )
