"""Limits of a run, and what to do about a call whose outcome a crash has lost."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from runlane.journal.errors import InvalidInputError

MODEL_TIMEOUT_S: Final = 600.0
TOOL_TIMEOUT_S: Final = 600.0
HOOK_TIMEOUT_S: Final = 60.0
RESULT_BYTES_MAX: Final = 1024 * 1024
RESULT_BYTES_LIMIT: Final = 3 * 1024 * 1024


NEEDED: Final = frozenset(
    {"max_steps", "max_no_tool_responses", "max_repeated_tool_calls", "max_result_bytes"}
)
"""Limits that cannot be None."""


def _check_limit(name: str, limit: object) -> None:
    if limit is None and name not in NEEDED:
        return
    number = int | float if name.endswith("_s") else int
    if isinstance(limit, bool) or not isinstance(limit, number) or not limit > 0:
        raise InvalidInputError(f"{name} must be a number over 0, not {limit!r}")


class BudgetLimits(Struct, frozen=True, kw_only=True):
    """What may be spent; None for no limit.

    A limit that is reached lets what is under way settle, and stops the next model request; the
    one on tool calls stops the next call. Tokens that a provider did not report are unknown, not
    zero: where one of the token limits is set, the run then stops as `usage_unavailable`.

    Attributes:
        max_input_tokens: Tokens that models read, cached ones included.
        max_output_tokens: Tokens that models wrote, reasoning included.
        max_total_tokens: Both together.
        max_requests: Model requests that were answered.
        max_iterations: Turns; one may take several requests.
        max_tool_calls: Tool calls that models asked for, over all responses.
        max_wall_s: Seconds from the begin of the run on, waits and crashes included; for a run
            only.

    Raises:
        InvalidInputError: A limit is not over 0.
    """

    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    max_total_tokens: int | None = None
    max_requests: int | None = None
    max_iterations: int | None = None
    max_tool_calls: int | None = None
    max_wall_s: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            _check_limit(name, getattr(self, name))


NO_LIMITS: Final = BudgetLimits()


class RuntimePolicy(Struct, frozen=True, kw_only=True):
    """Limits of one run, and how its loop goes.

    What is counted is counted in the journal: it goes on over crashes and hand-backs.

    Attributes:
        max_steps: Model responses that a run may take.
        max_no_tool_responses: With `require_explicit_finish`: this many responses in a row without
            a tool call end the run.
        max_repeated_tool_calls: The call that is the same for the n-th time in a row (name and
            arguments) is not made, and ends the run.
        max_run_tokens: Total tokens after which no further model request is sent; the same as
            `budget.max_total_tokens`.
        require_explicit_finish: A text does not end the run; only a tool that completes it does.
        parallel_tool_calls: Whether read-only calls that stand side by side run at the same time.
        max_parallel_tool_calls: How many of them at once; None for all.
        budget: What the run may spend.
        session_budget: What the history of the branch may have spent, this run included.
        max_result_bytes: What the model reads of one tool result, in UTF-8 bytes; the rest is kept
            beside the journal.
        model_timeout_s: Seconds that one model response may take; None for no limit.
        tool_timeout_s: The same for one call of a tool that does not say so itself.
        hook_timeout_s: The same for one call of a hook, a context transform or a hint provider.

    Raises:
        InvalidInputError: A limit is not over 0, or not of its type.
    """

    max_steps: int = 20
    max_no_tool_responses: int = 3
    max_repeated_tool_calls: int = 3
    max_run_tokens: int | None = None
    require_explicit_finish: bool = False
    parallel_tool_calls: bool = False
    max_parallel_tool_calls: int | None = None
    budget: BudgetLimits = NO_LIMITS
    session_budget: BudgetLimits = NO_LIMITS
    max_result_bytes: int = RESULT_BYTES_MAX
    model_timeout_s: float | None = MODEL_TIMEOUT_S
    tool_timeout_s: float | None = TOOL_TIMEOUT_S
    hook_timeout_s: float | None = HOOK_TIMEOUT_S

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if name.startswith("max_") or name.endswith("_s"):
                _check_limit(name, getattr(self, name))
        for name in ("require_explicit_finish", "parallel_tool_calls"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInputError(
                    f"{name} must be True or False, not {getattr(self, name)!r}"
                )
        for name in ("budget", "session_budget"):
            if not isinstance(getattr(self, name), BudgetLimits):
                raise InvalidInputError(
                    f"{name} should be BudgetLimits, not {getattr(self, name)!r}"
                )
        if self.max_result_bytes > RESULT_BYTES_LIMIT:
            raise InvalidInputError(
                f"max_result_bytes {self.max_result_bytes} is over {RESULT_BYTES_LIMIT}: "
                "a record must have room for it"
            )
        if self.session_budget.max_wall_s is not None:
            raise InvalidInputError("session_budget: max_wall_s is for the budget of a run")


class RecoveryPolicy(StrEnum):
    """What happens when a side-effecting call has begun, has no result, and nobody can tell.

    REPORT tells the model that the outcome is unknown; FAIL ends the run.
    """

    REPORT = "report"
    FAIL = "fail"
