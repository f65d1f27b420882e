"""Did it hold? Pure: what was observed, line by line, with what is wrong about it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from runlane.journal.wire.events import event_of
from runlane.journal.wire.records import (
    AttemptCause,
    RunContinued,
    RunFinished,
    RunStarted,
)
from runlane.worker.demo.observed import Attempt, Kill, Observed, SessionTrace
from runlane.worker.demo.side_effects import Call, calls_of

TAKEOVER_MAX_S: Final = 10.0
"""What "within seconds" means at the demo's lease, on a slow and busy machine."""


class Line(Struct, frozen=True):
    """One line of the verdict.

    Attributes:
        subject: What it is about.
        figure: What was measured.
        violations: What did not hold; empty if all did.
    """

    subject: str
    figure: str
    violations: tuple[str, ...]


def judge(observed: Observed, *, lease_s: float, runs_per_session: int) -> list[Line]:
    """Return the whole verdict."""
    return [
        _accepted(observed, runs_per_session),
        _ended(observed),
        _lanes(observed),
        _takeover(observed, lease_s),
        _hand_back(observed),
        _side_effects(observed),
        _events(observed),
        _workers(observed),
    ]


def _accepted(observed: Observed, runs_per_session: int) -> Line:
    violations = [
        f"{trace.session_id}: {trace.failure}" for trace in observed.sessions if trace.failure
    ]
    violations += [
        f"{trace.session_id}: {len(trace.accepted)} of {runs_per_session} runs were accepted"
        for trace in observed.sessions
        if len(trace.accepted) != runs_per_session
    ]
    figure = f"{observed.accepted_count} in {len(observed.sessions)} sessions"
    return Line("runs accepted", figure, tuple(violations))


def _ended(observed: Observed) -> Line:
    results = [result for trace in observed.sessions for result in trace.results.values()]
    completed = sum(result.succeeded for result in results)
    reasons = Counter(str(result.stop_reason) for result in results if not result.succeeded)
    others = "".join(f", {count} {reason}" for reason, count in reasons.most_common())
    violations = [violation for trace in observed.sessions for violation in _unsound_ends(trace)]
    if observed.scripted and reasons:
        violations.append(f"{sum(reasons.values())} runs did not complete")
    return Line(
        "runs completed", f"{completed} of {observed.accepted_count}{others}", tuple(violations)
    )


def _unsound_ends(trace: SessionTrace) -> Iterator[str]:
    ends = Counter(
        record.body.run_id for record in trace.records if isinstance(record.body, RunFinished)
    )
    for run_id in trace.accepted:
        if run_id not in trace.results:
            yield f"run {run_id} has not ended"
        elif ends[run_id] != 1:
            yield f"run {run_id} has {ends[run_id]} terminal records"


def _lanes(observed: Observed) -> Line:
    violations = [
        f"{trace.session_id}: its runs did not go one after the other, as they were accepted"
        for trace in observed.sessions
        if not _in_order(trace)
    ]
    count = len(observed.sessions)
    return Line("lanes in order", f"{count - len(violations)} of {count}", tuple(violations))


def _in_order(trace: SessionTrace) -> bool:
    steps = [
        (record.body.run_id, isinstance(record.body, RunFinished))
        for record in trace.records
        if isinstance(record.body, RunStarted | RunContinued | RunFinished)
    ]
    begun = {run_id for run_id, ends in steps if not ends}  # a discarded follow-up only ends
    expected = [(run_id, ends) for run_id in trace.accepted for ends in (False, True)]
    return [step for step in steps if step[0] in begun] == [
        step for step in expected if step[0] in begun
    ]


def _takeover(observed: Observed, lease_s: float) -> Line:
    subject = f"taken over after SIGKILL (lease {lease_s:g} s)"
    kill = observed.kill
    if kill is None:
        return Line(subject, "-", ("no worker was killed",))
    takeovers = observed.takeovers()
    seconds = [attempt.at_s - kill.at_s for attempt in takeovers.values()]
    violations = [
        f"run {run_id} of the killed worker was not taken over"
        for run_id in kill.held
        if run_id not in takeovers
    ]
    if observed.scripted and not kill.held:
        violations.append("the killed worker held no run")
    if seconds and max(seconds) > TAKEOVER_MAX_S:
        violations.append(f"a takeover took {max(seconds):.1f} s")
    return Line(subject, _spread(seconds), tuple(violations))


def _hand_back(observed: Observed) -> Line:
    subject = "handed back after SIGTERM"
    drain = observed.drain
    if drain is None:
        return Line(subject, "-", ("no worker was drained",))
    seconds: list[float] = []
    violations: list[str] = []
    if drain.exit_code != 0:
        violations.append(f"the drained worker ended with exit code {drain.exit_code}")
    for before, after in _successions(observed.attempts):
        if before.worker_id != drain.worker_id or after.at_s < drain.at_s:
            continue
        if after.cause is AttemptCause.HAND_BACK:
            seconds.append(after.at_s - drain.at_s)
        else:
            violations.append(f"run {after.run_id} of the drained worker was lost, not handed back")
    if observed.scripted and not seconds:
        violations.append("no run was handed back")
    return Line(subject, _spread(seconds), tuple(violations))


def _successions(attempts: Iterable[Attempt]) -> Iterator[tuple[Attempt, Attempt]]:
    """Yield each attempt that another one of its run followed, with that one."""
    last: dict[str, Attempt] = {}
    for attempt in attempts:
        if before := last.get(attempt.run_id):
            yield before, attempt
        last[attempt.run_id] = attempt


def _spread(seconds: list[float]) -> str:
    if not seconds:
        return "no run"
    first, last = min(seconds), max(seconds)
    return f"{len(seconds)} run{'s' if len(seconds) > 1 else ''} in {first:.2f} to {last:.2f} s"


def _side_effects(observed: Observed) -> Line:
    records = (record for trace in observed.sessions for record in trace.records)
    calls = calls_of(records, observed.ledger)
    once = sum(call.exactly_once for call in calls)
    unknown = sum(call.unknown for call in calls)
    twice = sum(call.started > 1 for call in calls)
    violations = [f"call {call.operation_key} {call.violation}" for call in calls if call.violation]
    if observed.kill is not None:
        violations += _interrupted(observed.kill, calls, must_be=observed.scripted)
    return Line(
        "side effects per call",
        f"{len(calls)} calls: {once} once, {unknown} outcome_unknown, {twice} twice",
        tuple(violations),
    )


def _interrupted(kill: Kill, calls: list[Call], *, must_be: bool) -> Iterator[str]:
    """Yield what is wrong with the call that the SIGKILL should have cut in two."""
    call = next((each for each in calls if each.operation_key == kill.refund), None)
    if call is None:
        if must_be:
            yield "the SIGKILL hit no call"
    elif (call.started, call.done) == (1, 1):
        yield f"call {call.operation_key} had ended before the SIGKILL"
    elif not call.unknown:
        yield f"call {call.operation_key} was cut in two, and is not called unknown"


def _events(observed: Observed) -> Line:
    heard = sum(len(trace.events) for trace in observed.sessions)
    journaled = sum(len(trace.records) for trace in observed.sessions)
    live = sum(trace.provisional_count for trace in observed.sessions)
    violations = [
        f"{trace.session_id}: heard {len(trace.events)} committed events, not the "
        f"{len(trace.records)} of the journal in their order"
        for trace in observed.sessions
        if trace.events != [event_of(trace.session_id, record) for record in trace.records]
    ]
    figure = f"{heard} heard, {journaled} journaled ({live} provisional ones)"
    return Line("committed events", figure, tuple(violations))


def _workers(observed: Observed) -> Line:
    violations = tuple(f"{name} ended though nobody ended it" for name in observed.died)
    return Line("workers that died by themselves", str(len(observed.died)), violations)
