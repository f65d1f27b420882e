"""How runs end in EJAgent's journals, and which of its words stand for ours."""

from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from runlane.journal.transfer.breach import BreachError
from runlane.journal.transfer.ejagent_messages import (
    OWN_KEY,
    Integer,
    Natural,
    TokenCounts,
    file_counts,
)
from runlane.journal.wire.results import AgentRunResult, RunStatus, RunUsage, StopReason

_NEAREST: Final = MappingProxyType(
    {
        StopReason.SUPERSEDED: StopReason.EXTERNAL_ABORT,
        StopReason.WORKER_LOST: StopReason.RUNTIME_ERROR,
        StopReason.BUDGET_EXCEEDED: StopReason.TOKEN_BUDGET_EXCEEDED,
        StopReason.DEADLINE_EXCEEDED: StopReason.RUNTIME_ERROR,
        StopReason.RATE_LIMITED: StopReason.RUNTIME_ERROR,
        StopReason.PROVIDER_TIMEOUT: StopReason.RUNTIME_ERROR,
        StopReason.PROVIDER_AUTH: StopReason.RUNTIME_ERROR,
        StopReason.PROVIDER_ERROR: StopReason.RUNTIME_ERROR,
    }
)
"""Stop reasons that EJAgent does not know → the nearest that it does, with the same status."""

_KnownReason = Literal[
    "text_response",
    "tool_completion",
    "tool_rejected",
    "tool_cancelled",
    "behavior_stop",
    "external_abort",
    "empty_response",
    "max_steps",
    "max_no_tool_responses",
    "repeated_tool_call",
    "token_budget_exceeded",
    "usage_unavailable",
    "context_overflow",
    "compaction_failed",
    "runtime_error",
]


class _RunCounts(TokenCounts, frozen=True, kw_only=True):
    """Tokens and requests of a run."""

    request_count: Natural
    reported_request_count: Natural

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reported_request_count > self.request_count:
            raise BreachError("reported_request_count is more than request_count")


class _OwnEnd(Struct, frozen=True):
    """Under `OWN_KEY` of a result: what we call its end, and the error as we had it."""

    stop_reason: StopReason
    error: str | None = None


class FileResult(Struct, frozen=True):
    """The result of a run in a file."""

    status: RunStatus
    stop_reason: _KnownReason
    turns: Integer
    usage: _RunCounts
    output: str | None = None
    error: str | None = None
    own: _OwnEnd | None = msgspec.field(default=None, name=OWN_KEY)

    def to_result(self) -> AgentRunResult:
        """Return the result as our records hold it."""
        usage = self.usage
        return AgentRunResult(
            status=self.status,
            stop_reason=self.own.stop_reason if self.own else StopReason(self.stop_reason),
            turns=self.turns,
            output=self.output,
            error=self.own.error if self.own else self.error,
            usage=RunUsage(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                request_count=usage.request_count,
                reported_request_count=usage.reported_request_count,
            ),
        )


def file_result(result: AgentRunResult) -> dict[str, Any]:
    """Return the result as EJAgent's journals hold it."""
    reason, usage = result.stop_reason, result.usage
    requests = max(usage.request_count, 0)
    found: dict[str, Any] = {
        "status": str(result.status),
        "stop_reason": str(_NEAREST.get(reason, reason)),
        "turns": result.turns,
        "output": result.output,
        "error": result.error,
        "usage": {
            **file_counts(usage),
            "request_count": requests,
            "reported_request_count": min(max(usage.reported_request_count, 0), requests),
        },
    }
    if reason in _NEAREST:
        found["error"] = f"{reason}: {result.error}" if result.error else str(reason)
        found[OWN_KEY] = {"stop_reason": str(reason), "error": result.error}
    return found
