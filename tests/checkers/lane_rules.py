"""What must hold between lanes, their waiting runs and the queues."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.checkers.keyspace import Keyspace
from tests.checkers.run_rules import HELD, TERMINAL

from runlane.journal.wire.bodies import RunBody
from runlane.journal.wire.records import RunContinued, RunFinished, RunQueued, RunStarted


def runs_wait_in_one_place(space: Keyspace) -> Iterator[str]:
    """A run that has not ended is the active one of its lane, or waits once; others nowhere."""
    places: Counter[tuple[str, str]] = Counter()
    for lane in space.lanes:
        if active := space.lane_text(lane, "active"):
            places[active, lane] += 1
    for waiting in (space.follow_ups, space.inboxes):
        for lane, run_ids in waiting.items():
            places.update((run_id, lane) for run_id in run_ids)
    count = Counter(run_id for run_id, _ in places.elements())
    for run_id, lane in places:
        if run_id not in space.runs:
            yield f"lane {lane}: holds run {run_id}, which does not exist"
        elif space.lane_of(run_id) != lane:
            yield f"lane {lane}: holds run {run_id} of lane {space.lane_of(run_id)}"
    for run_id in space.runs:
        state = space.run_text(run_id, "state")
        if count[run_id] != (state not in TERMINAL):
            yield f"run {run_id}: is {state} and in {count[run_id]} places of its lane"


def lanes_are_not_stranded(space: Keyspace) -> Iterator[str]:
    """Where something waits, something is active, and what is active is in its queue."""
    for lane in {**space.inboxes, **space.follow_ups}:
        if not space.lane_text(lane, "active"):
            yield f"lane {lane}: runs wait, but none is active"
    for lane in space.lanes:
        run_id = space.lane_text(lane, "active")
        queue = space.run_text(run_id, "queue")
        if run_id and run_id not in space.queues.get(queue, {}):
            yield f"lane {lane}: active run {run_id} is not in queue {queue!r}"
    names = set(space.values["queues"].get("", []))
    for queue, members in space.queues.items():
        for run_id in members:
            if run_id not in space.runs:
                continue  # not ours: claim will dead-letter it
            active = space.lane_text(space.lane_of(run_id), "active")
            if active != run_id or space.run_text(run_id, "queue") != queue:
                yield f"queue {queue}: holds run {run_id}, which is not the head of its lane"
            if queue not in names:
                yield f"queue {queue}: holds run {run_id}, but is not listed"


def leases_match_states(space: Keyspace) -> Iterator[str]:
    """Exactly the leased and running runs are held: by a fence and by a worker."""
    for run_id in space.runs:
        state, lane = space.run_text(run_id, "state"), space.lane_of(run_id)
        active = space.lane_text(lane, "active") == run_id
        if state in HELD and not active:
            yield f"run {run_id}: is {state}, but not the active one of {lane}"
        if (state in HELD) != bool(space.run_text(run_id, "worker")):
            yield f"run {run_id}: is {state}, worker {space.run_text(run_id, 'worker')!r}"
        if active and (state in HELD) != bool(space.lane_text(lane, "fence")):
            yield f"run {run_id}: is {state}, fence {space.lane_text(lane, 'fence')!r}"
    for lane in space.lanes:
        if space.lane_text(lane, "fence") and not space.lane_text(lane, "active"):
            yield f"lane {lane}: a fence is left without an active run"
        last = space.lane_text(lane, "last_run")
        ended = (space.run_text(last, "state"), space.run_text(last, "stop_reason"))
        wrong = ended[0] not in TERMINAL or ended[1] != space.lane_text(lane, "last_stop")
        if space.lane_of(last) == lane and wrong:
            yield f"lane {lane}: its last run {last} has not ended as it says"


@dataclass
class _Lane:
    """A lane replayed from its session's records."""

    name: str
    active: str = ""
    follow_ups: list[str] = field(default_factory=list[str])
    inbox: list[str] = field(default_factory=list[str])
    doomed: set[str] = field(default_factory=set[str])

    def settle(self) -> Iterator[str]:
        """Let the next waiting run become active, if none is."""
        for run_id in self.doomed:
            yield f"lane {self.name}: follow-up {run_id} outlived the failure that it depended on"
        self.doomed = set()
        if not self.active and (waiting := self.follow_ups or self.inbox):
            self.active = waiting.pop(0)

    def accept(self, body: RunQueued) -> Iterator[str]:
        yield from self.settle()
        if not self.active:
            self.active = body.run_id
        else:
            (self.follow_ups if body.intent == "follow_up" else self.inbox).append(body.run_id)

    def begin(self, run_id: str) -> Iterator[str]:
        yield from self.settle()
        if run_id != self.active:
            yield f"lane {self.name}: run {run_id} began when it was the turn of {self.active!r}"

    def finish(self, body: RunFinished, space: Keyspace) -> None:
        run_id = body.run_id
        self.doomed.discard(run_id)
        for waiting in (self.follow_ups, self.inbox):
            if run_id in waiting:
                waiting.remove(run_id)
        if run_id == self.active:
            self.active = ""
            if not body.result.succeeded:
                dependent = (f for f in self.follow_ups if space.run_text(f, "policy") == "discard")
                self.doomed = set(dependent)


def lanes_run_in_order(space: Keyspace) -> Iterator[str]:
    """The journal alone, replayed, gives the order of runs and what waits now."""
    for session, entries in space.logs.items():
        if space.trimmed(session):
            continue  # what was accepted, and when, is partly told by the archive
        imported, aside = space.imported(session), space.set_aside(session)
        lanes: dict[str, _Lane] = {}
        for entry in entries:
            body = entry.body
            branch = getattr(body, "branch_id", entry.branch)
            lane = lanes.setdefault(branch, _Lane(f"{session}/{branch}"))
            match body:
                case RunBody(run_id=run_id) if run_id in imported or entry.stream_id in aside:
                    pass
                case RunQueued():
                    yield from lane.accept(body)
                case RunStarted() | RunContinued():
                    yield from lane.begin(body.run_id)
                case RunFinished():
                    lane.finish(body, space)
                case _:
                    pass
        for lane in lanes.values():
            yield from lane.settle()
            yield from _compare(space, lane)


def _compare(space: Keyspace, lane: _Lane) -> Iterator[str]:
    replayed = (lane.active, lane.follow_ups, lane.inbox)
    found = (
        space.lane_text(lane.name, "active"),
        space.follow_ups.get(lane.name, []),
        space.inboxes.get(lane.name, []),
    )
    if any(map(space.is_hold, (found[0], *found[2]))):
        found, replayed = _without_holds(space, found), _without_holds(space, replayed)
    if found != replayed:
        yield f"lane {lane.name}: active, follow-ups, inbox are {found}, not {replayed}"


def _without_holds(
    space: Keyspace, lane: tuple[str, list[str], list[str]]
) -> tuple[str, list[str], list[str]]:
    """Return the order of the runs alone: a hold among them is in no record."""
    active, follow_ups, inbox = lane
    runs = [run_id for run_id in (active, *follow_ups, *inbox) if run_id]
    return "", [], [run_id for run_id in runs if not space.is_hold(run_id)]


def nothing_goes_on(space: Keyspace) -> Iterator[str]:
    """Of a deployment that has come to rest: all runs have ended and left nothing behind."""
    waiting: dict[str, list[str]] = defaultdict(list)
    for lane in space.lanes:
        for name in ("active", "fence"):
            if value := space.lane_text(lane, name):
                yield f"lane {lane}: {name} {value} at rest"
    for kind in ("q:", "inbox:", "next:", "part:", "steer:"):
        for name, members in space.values[kind].items():
            yield f"{space.keys.root}:{kind}{name}: is not empty at rest ({len(members)})"
    for run_id in space.runs:
        if (state := space.run_text(run_id, "state")) not in TERMINAL:
            waiting[state].append(run_id)
    for state, run_ids in waiting.items():
        yield f"{len(run_ids)} runs are {state} at rest, {run_ids[0]} among them"
