"""What ends a run between two turns, by what the journal has counted. Pure."""

from runlane.journal.projection import OpenRun, Projection
from runlane.journal.wire.results import RunUsage, StopReason
from runlane.worker.loop.ending import Ending
from runlane.worker.policy import NO_LIMITS, BudgetLimits, RuntimePolicy


def reached_limit(policy: RuntimePolicy, projection: Projection, elapsed_s: float) -> Ending | None:
    """Return how the open run ends in the place of another turn; None if it may go on."""
    run = projection.open_run
    assert run is not None
    if run.turn >= policy.max_steps:
        return Ending(StopReason.MAX_STEPS, error=f"the run took its {run.turn} permitted turns")
    if run.turn and (ending := _run_spent(policy, run)):
        return ending
    spent = projection.spent
    if ending := _spent("session", policy.session_budget, spent.usage, spent.turns):
        return ending
    return _out_of_time(policy.budget, elapsed_s)


def reached_tool_calls(policy: RuntimePolicy, run_calls: int, history_calls: int) -> str | None:
    """Return why a tool call may not be made; None if it may.

    Args:
        policy: The limits.
        run_calls: The number of the call in its run, from 1.
        history_calls: Its number in the whole history.
    """
    for owner, budget, number in (
        ("run", policy.budget, run_calls),
        ("session", policy.session_budget, history_calls),
    ):
        limit = budget.max_tool_calls
        if limit is not None and number > limit:
            return f"the {owner} may make {limit} tool calls"
    return None


def remaining_s(policy: RuntimePolicy, elapsed_s: float) -> float | None:
    """Return the seconds that are left of the run's time; None if it has no limit."""
    limit = policy.budget.max_wall_s
    return None if limit is None else max(limit - elapsed_s, 0.0)


def _run_spent(policy: RuntimePolicy, run: OpenRun) -> Ending | None:
    return _spent("run", policy.budget, run.usage, run.turn, policy.max_run_tokens)


def _spent(
    owner: str,
    budget: BudgetLimits,
    usage: RunUsage,
    turns: int,
    max_tokens: int | None = None,
) -> Ending | None:
    if budget is NO_LIMITS and max_tokens is None:
        return None
    tokens = (
        ("input tokens", usage.input_tokens, budget.max_input_tokens),
        ("output tokens", usage.output_tokens, budget.max_output_tokens),
        ("tokens", usage.total_tokens, budget.max_total_tokens),
        ("tokens", usage.total_tokens, max_tokens),
    )
    limited = any(limit is not None for _, _, limit in tokens)
    if limited and not usage.complete:
        return Ending(
            StopReason.USAGE_UNAVAILABLE,
            error=f"the {owner} has a token budget, and {usage.missing_request_count} of its "
            f"{usage.request_count} responses came without usage",
        )
    for reason, counts in (
        (StopReason.TOKEN_BUDGET_EXCEEDED, tokens),
        (
            StopReason.BUDGET_EXCEEDED,
            (
                ("model requests", usage.request_count, budget.max_requests),
                ("turns", turns, budget.max_iterations),
            ),
        ),
    ):
        for what, count, limit in counts:
            if limit is not None and count >= limit:
                return Ending(reason, error=f"the {owner} has spent {count} of {limit} {what}")
    return None


def _out_of_time(budget: BudgetLimits, elapsed_s: float) -> Ending | None:
    limit = budget.max_wall_s
    if limit is None or elapsed_s < limit:
        return None
    return Ending(
        StopReason.DEADLINE_EXCEEDED, error=f"the run has gone on for {elapsed_s:.0f} of {limit} s"
    )
