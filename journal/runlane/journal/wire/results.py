"""How a run ended: statuses, stop reasons, usage and the result."""

from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from runlane.journal.errors import AgentRunError
from runlane.journal.wire.messages import ModelUsage


class RunStatus(StrEnum):
    """The four ways a run can end."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"


class StopReason(StrEnum):
    """Why a run ended; `STATUS_OF` says which status each one gives."""

    TEXT_RESPONSE = "text_response"
    TOOL_COMPLETION = "tool_completion"
    TOOL_REJECTED = "tool_rejected"
    TOOL_CANCELLED = "tool_cancelled"
    BEHAVIOR_STOP = "behavior_stop"
    EXTERNAL_ABORT = "external_abort"
    EMPTY_RESPONSE = "empty_response"
    MAX_STEPS = "max_steps"
    MAX_NO_TOOL_RESPONSES = "max_no_tool_responses"
    REPEATED_TOOL_CALL = "repeated_tool_call"
    TOKEN_BUDGET_EXCEEDED = "token_budget_exceeded"  # noqa: S105 (a word, not a secret)
    USAGE_UNAVAILABLE = "usage_unavailable"
    CONTEXT_OVERFLOW = "context_overflow"
    COMPACTION_FAILED = "compaction_failed"
    RUNTIME_ERROR = "runtime_error"
    WORKER_LOST = "worker_lost"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    RATE_LIMITED = "rate_limited"
    PROVIDER_TIMEOUT = "provider_timeout"
    PROVIDER_AUTH = "provider_auth"
    PROVIDER_ERROR = "provider_error"
    SUPERSEDED = "superseded"
    BUDGET_EXCEEDED = "budget_exceeded"

    @property
    def status(self) -> RunStatus:
        """The status that this reason gives a run."""
        return STATUS_OF.get(self, RunStatus.FAILED)


STATUS_OF: Final = MappingProxyType(
    {
        StopReason.TEXT_RESPONSE: RunStatus.COMPLETED,
        StopReason.TOOL_COMPLETION: RunStatus.COMPLETED,
        StopReason.BEHAVIOR_STOP: RunStatus.COMPLETED,
        StopReason.TOOL_REJECTED: RunStatus.REJECTED,
        StopReason.TOOL_CANCELLED: RunStatus.CANCELLED,
        StopReason.EXTERNAL_ABORT: RunStatus.CANCELLED,
        StopReason.SUPERSEDED: RunStatus.CANCELLED,
    }
)
"""Reasons that are not listed give FAILED."""

CONTINUABLE: Final = frozenset(
    {
        StopReason.TEXT_RESPONSE,
        StopReason.TOOL_COMPLETION,
        StopReason.BEHAVIOR_STOP,
        StopReason.EMPTY_RESPONSE,
        StopReason.MAX_STEPS,
        StopReason.MAX_NO_TOOL_RESPONSES,
        StopReason.TOKEN_BUDGET_EXCEEDED,
        StopReason.BUDGET_EXCEEDED,
        StopReason.USAGE_UNAVAILABLE,
        StopReason.WORKER_LOST,
        StopReason.DEADLINE_EXCEEDED,
        StopReason.RATE_LIMITED,
        StopReason.PROVIDER_TIMEOUT,
        StopReason.PROVIDER_ERROR,
    }
)
"""What `continue_run` may follow: EJAgent's eight, and those of ours that allow it."""


class RunUsage(Struct, frozen=True, omit_defaults=True):
    """Tokens of a whole run. What was not reported is unknown, not zero.

    Attributes:
        cache_read_tokens: None if a request with usage did not report it; so are the next two.
        request_count: Model requests that were sent.
        reported_request_count: Those of them whose usage is included here.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    request_count: int = 0
    reported_request_count: int = 0

    @property
    def total_tokens(self) -> int:
        """Input plus output of the reported requests."""
        return self.input_tokens + self.output_tokens

    @property
    def complete(self) -> bool:
        """Whether every request reported its usage."""
        return self.request_count == self.reported_request_count

    @property
    def missing_request_count(self) -> int:
        """Requests whose usage is unknown."""
        return self.request_count - self.reported_request_count

    def plus(self, usage: ModelUsage | None) -> "RunUsage":
        """Return this usage with one more request, whose usage may be unknown."""
        if usage is None:
            return replace(self, request_count=self.request_count + 1)
        return RunUsage(
            input_tokens=self.input_tokens + usage.input_tokens,
            output_tokens=self.output_tokens + usage.output_tokens,
            cache_read_tokens=self._optional(self.cache_read_tokens, usage.cache_read_tokens),
            cache_write_tokens=self._optional(self.cache_write_tokens, usage.cache_write_tokens),
            reasoning_tokens=self._optional(self.reasoning_tokens, usage.reasoning_tokens),
            request_count=self.request_count + 1,
            reported_request_count=self.reported_request_count + 1,
        )

    def _optional(self, so_far: int | None, more: int | None) -> int | None:
        """Return a sum that is unknown for ever once a request with usage left it out."""
        if more is None or (so_far is None and self.reported_request_count):
            return None
        return (so_far or 0) + more


class AgentRunResult(Struct, frozen=True, omit_defaults=True):
    """What a run came to.

    Attributes:
        status: One of the four ends.
        stop_reason: Why it ended there.
        turns: Model responses that the run took.
        output: The final text or the output of a completing tool; None if there is none.
        error: What went wrong, for people; None for a completed run.
        usage: Tokens over all turns and attempts.
    """

    status: RunStatus
    stop_reason: StopReason
    turns: int = 0
    output: str | None = None
    error: str | None = None
    usage: RunUsage = RunUsage()

    @property
    def succeeded(self) -> bool:
        """Whether the run completed."""
        return self.status is RunStatus.COMPLETED

    def raise_for_status(self) -> "AgentRunResult":
        """Return this result if the run completed.

        Raises:
            AgentRunError: The run ended in any other way; the error carries this result.
        """
        if not self.succeeded:
            raise AgentRunError(self)

        return self
