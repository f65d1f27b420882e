"""What must hold of every deployment at rest, whatever happened to its processes before."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from redis.asyncio import Redis
from tests.checkers import branch_rules, lane_rules, run_rules, session_rules, steering_rules
from tests.checkers.keyspace import Keyspace, read_keyspace

Rule = Callable[[Keyspace], Iterator[str]]

RULES: Final[tuple[Rule, ...]] = (
    session_rules.sessions_are_listed,
    branch_rules.chains_are_sound,
    branch_rules.jumps_are_noted,
    branch_rules.checkpoints_repeat_their_path,
    branch_rules.lanes_know_their_branches,
    branch_rules.blobs_are_counted,
    session_rules.records_are_in_order,
    session_rules.attempts_write_one_after_another,
    session_rules.tool_calls_are_settled_once,
    run_rules.runs_match_their_records,
    run_rules.outputs_are_stored_once,
    run_rules.arq_mirrors_the_runs,
    run_rules.nothing_belongs_to_no_run,
    steering_rules.inputs_wait_for_a_run_that_goes_on,
    steering_rules.inputs_are_settled_once,
    lane_rules.runs_wait_in_one_place,
    lane_rules.lanes_are_not_stranded,
    lane_rules.leases_match_states,
    lane_rules.lanes_run_in_order,
)
SHOWN_MAX: Final = 20


async def violations(redis: Redis, prefix: str, *, quiescent: bool) -> list[str]:
    """Return what is wrong with the keyspace of a prefix, in words; nobody may write meanwhile.

    Args:
        redis: A client that returns bytes.
        prefix: The deployment.
        quiescent: Whether every run must have ended too.
    """
    space = await read_keyspace(redis, prefix)
    rules = (*RULES, lane_rules.nothing_goes_on) if quiescent else RULES
    return [*space.faults, *(text for rule in rules for text in rule(space))]


async def check_keyspace(redis: Redis, prefix: str, *, quiescent: bool) -> None:
    """Assert that nothing is wrong with the keyspace of a prefix; see `violations`."""
    found = await violations(redis, prefix, quiescent=quiescent)
    shown = "\n".join(islice(found, SHOWN_MAX))
    assert not found, f"{len(found)} violations under {prefix}:\n{shown}"
