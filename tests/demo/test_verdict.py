"""The verdict: each of its checks can fail, and says what did not hold."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.demo.story import (
    CONTINUE,
    CUT,
    FOLLOW_UP,
    RUN,
    WHOLE,
    ended,
    hear_all,
    journal,
    settled,
    story,
)

from runlane.journal.wire.bodies import RunBody
from runlane.journal.wire.records import (
    AnyBody,
    AttemptCause,
    AttemptStarted,
    RunFinished,
    RunStarted,
    ToolCompleted,
    ToolOutcome,
    ToolStarted,
)
from runlane.journal.wire.results import AgentRunResult, RunStatus, StopReason
from runlane.worker.demo.ledger import Entry, Mark
from runlane.worker.demo.observed import Observed, SessionTrace
from runlane.worker.demo.verdict import Line, judge

FAILED = AgentRunResult(status=RunStatus.FAILED, stop_reason=StopReason.MAX_STEPS)

ACCEPTED = "runs accepted"
ENDED = "runs completed"
LANES = "lanes in order"
TAKEOVER = "taken over after SIGKILL (lease 2 s)"
HAND_BACK = "handed back after SIGTERM"
SIDE_EFFECTS = "side effects per call"
EVENTS = "committed events"
WORKERS = "workers that died by themselves"

Damage = Callable[[Observed, SessionTrace], object]


def verdict(observed: Observed) -> dict[str, Line]:
    return {line.subject: line for line in judge(observed, lease_s=2, runs_per_session=3)}


def rewritten(trace: SessionTrace, change: Callable[[AnyBody], list[AnyBody]]) -> None:
    """Replace each record by any number of others, as journal and subscriber alike see it."""
    trace.records = journal(*(body for record in trace.records for body in change(record.body)))
    hear_all(trace)


def of_run(body: AnyBody, run_id: str) -> bool:
    return isinstance(body, RunBody) and body.run_id == run_id


def without(trace: SessionTrace, kind: type[AnyBody], run_id: str) -> None:
    rewritten(
        trace,
        lambda body: [] if isinstance(body, kind) and of_run(body, run_id) else [body],
    )


def twice(trace: SessionTrace, kind: type[AnyBody], run_id: str) -> None:
    rewritten(
        trace,
        lambda body: [body, body] if isinstance(body, kind) and of_run(body, run_id) else [body],
    )


def with_outcome(trace: SessionTrace, run_id: str, outcome: ToolOutcome, *, attempt: int) -> None:
    def change(body: AnyBody) -> list[AnyBody]:
        if isinstance(body, ToolCompleted) and body.run_id == run_id:
            return [settled(run_id, outcome, attempt=attempt)]
        return [body]

    rewritten(trace, change)


def with_cause(trace: SessionTrace, run_id: str, cause: AttemptCause) -> None:
    rewritten(
        trace,
        lambda body: (
            [replace(body, cause=cause)]
            if isinstance(body, AttemptStarted) and body.run_id == run_id
            else [body]
        ),
    )


def overlapping(trace: SessionTrace) -> None:
    """Let the follow-up begin before the end of the run."""
    bodies = [record.body for record in trace.records]
    begin = next(b for b in bodies if isinstance(b, RunStarted) and b.run_id == FOLLOW_UP)
    bodies.remove(begin)
    bodies.insert(bodies.index(ended(RUN)), begin)
    trace.records = journal(*bodies)
    hear_all(trace)


def set_kill(observed: Observed, **changes: object) -> None:
    assert observed.kill is not None
    observed.kill = replace(observed.kill, **changes)


def set_drain(observed: Observed, **changes: object) -> None:
    assert observed.drain is not None
    observed.drain = replace(observed.drain, **changes)


DAMAGES: list[tuple[str, Damage, str]] = [
    (ACCEPTED, lambda _, t: setattr(t, "failure", "refused"), "s1: refused"),
    (ACCEPTED, lambda _, t: t.accepted.pop(), "2 of 3 runs were accepted"),
    (ENDED, lambda _, t: t.results.pop(CONTINUE), "run continue has not ended"),
    (ENDED, lambda _, t: t.results.update({RUN: FAILED}), "1 runs did not complete"),
    (ENDED, lambda _, t: without(t, RunFinished, RUN), "run run has 0 terminal records"),
    (ENDED, lambda _, t: twice(t, RunFinished, RUN), "run run has 2 terminal records"),
    (LANES, lambda _, t: overlapping(t), "did not go one after the other"),
    (LANES, lambda _, t: t.accepted.reverse(), "did not go one after the other"),
    (TAKEOVER, lambda o, _: setattr(o, "kill", None), "no worker was killed"),
    (TAKEOVER, lambda o, _: set_kill(o, held=()), "held no run"),
    (TAKEOVER, lambda o, _: set_kill(o, held=(RUN, "r9")), "run r9 of the killed worker was not"),
    (TAKEOVER, lambda o, _: set_kill(o, at_s=-60.0), "a takeover took 60.6 s"),
    (TAKEOVER, lambda _, t: without(t, AttemptStarted, RUN), "was not taken over"),
    (HAND_BACK, lambda o, _: setattr(o, "drain", None), "no worker was drained"),
    (HAND_BACK, lambda o, _: set_drain(o, exit_code=-9), "ended with exit code -9"),
    (HAND_BACK, lambda _, t: without(t, AttemptStarted, FOLLOW_UP), "no run was handed back"),
    (HAND_BACK, lambda _, t: with_cause(t, FOLLOW_UP, AttemptCause.CRASH), "was lost, not handed"),
    (
        SIDE_EFFECTS,
        lambda o, _: o.ledger.append(Entry(Mark.STARTED, WHOLE, 2, 12)),
        f"call {WHOLE} happened 2 times",
    ),
    (
        SIDE_EFFECTS,
        lambda o, _: o.ledger.append(Entry(Mark.STARTED, CUT, 2, 12)),
        f"call {CUT} happened 2 times",
    ),
    (
        SIDE_EFFECTS,
        lambda o, _: o.ledger.append(Entry(Mark.STARTED, "x:1:0", 1, 12)),
        "call x:1:0 happened without an intent",
    ),
    (SIDE_EFFECTS, lambda _, t: without(t, ToolStarted, FOLLOW_UP), "without an intent"),
    (SIDE_EFFECTS, lambda _, t: without(t, ToolCompleted, FOLLOW_UP), "has no result"),
    (SIDE_EFFECTS, lambda o, _: o.ledger.pop(), "began 1 times, ended 0 times"),
    (SIDE_EFFECTS, lambda o, _: o.ledger.clear(), "began 0 times, ended 0 times"),
    (
        SIDE_EFFECTS,
        lambda _, t: with_outcome(t, FOLLOW_UP, ToolOutcome.UNKNOWN, attempt=1),
        "is called unknown though nothing crashed",
    ),
    (
        SIDE_EFFECTS,
        lambda _, t: with_outcome(t, RUN, ToolOutcome.ERROR, attempt=2),
        "was cut in two, and is not called unknown",
    ),
    (
        SIDE_EFFECTS,
        lambda o, _: o.ledger.append(Entry(Mark.DONE, CUT, 1, 10)),
        "had ended before the SIGKILL",
    ),
    (SIDE_EFFECTS, lambda o, _: set_kill(o, refund=None), "the SIGKILL hit no call"),
    (EVENTS, lambda _, t: t.events.pop(), "heard 16 committed events, not the 17"),
    (EVENTS, lambda _, t: t.events.append(t.events[-1]), "heard 18 committed events"),
    (EVENTS, lambda _, t: t.events.reverse(), "in their order"),
    (EVENTS, lambda _, t: t.events.__setitem__(3, replace(t.events[3], turn=7)), "in their order"),
    (WORKERS, lambda o, _: o.died.append("worker 2"), "worker 2 ended though nobody ended it"),
]


def test_a_sound_demo_holds_in_every_line() -> None:
    lines = verdict(story())
    assert {line.subject: line.violations for line in lines.values() if line.violations} == {}
    assert lines[ACCEPTED].figure == "3 in 1 sessions"
    assert lines[ENDED].figure == "3 of 3"
    assert lines[TAKEOVER].figure == "1 run in 0.05 to 0.05 s"
    assert lines[HAND_BACK].figure == "1 run in 0.15 to 0.15 s"
    assert lines[SIDE_EFFECTS].figure == "2 calls: 1 once, 1 outcome_unknown, 0 twice"
    assert lines[EVENTS].figure == "17 heard, 17 journaled (0 provisional ones)"


@pytest.mark.parametrize(
    ("subject", "damage", "violation"), DAMAGES, ids=[f"{d[0]}: {d[2]}" for d in DAMAGES]
)
def test_what_does_not_hold_is_reported(subject: str, damage: Damage, violation: str) -> None:
    observed = story()
    damage(observed, observed.sessions[0])
    assert violation in "\n".join(verdict(observed)[subject].violations)


def test_the_stop_reasons_of_other_ends_are_shown() -> None:
    observed = story()
    observed.sessions[0].results[RUN] = FAILED
    assert verdict(observed)[ENDED].figure == "2 of 3, 1 max_steps"


def test_a_real_model_may_do_less_than_a_script() -> None:
    observed = story()
    observed.scripted = False
    trace = observed.sessions[0]
    trace.results[RUN] = FAILED
    set_kill(observed, held=(), refund=None)
    without(trace, AttemptStarted, FOLLOW_UP)
    assert [line.subject for line in verdict(observed).values() if line.violations] == []


def test_a_follow_up_that_was_discarded_is_no_disorder() -> None:
    observed = story()
    trace = observed.sessions[0]
    rewritten(
        trace,
        lambda body: [body] if not of_run(body, FOLLOW_UP) or isinstance(body, RunFinished) else [],
    )
    assert verdict(observed)[LANES].violations == ()
