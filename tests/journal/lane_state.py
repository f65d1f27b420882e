"""A deployment beside its oracle, and how the two are compared."""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant
from tests.checkers.invariants import RULES
from tests.checkers.keyspace import Keyspace, read_keyspace, revision_of
from tests.journal.builders import said, started, taken_over, unheard
from tests.journal.driving import Driver, open_driver
from tests.journal.oracle import (
    CRASHES_MAX,
    WORKERS,
    Oracle,
    OracleLane,
    OracleRun,
)

from runlane.journal.errors import RunlaneError
from runlane.journal.lease import Lease
from runlane.journal.link import client_for
from runlane.journal.wire.records import AnyBody, MessageAppended
from runlane.journal.wire.results import StopReason

if TYPE_CHECKING:
    from tests.journal.recording import Sent

T = TypeVar("T")

LEASE_MS: Final = 3_600_000


class LaneState(RuleBasedStateMachine):
    """What a machine of lanes knows and draws from; it ends with everything at rest."""

    url: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.driver = self.wait(self.open())
        self.oracle = Oracle()
        self.jobs = 0
        self.sound = False
        self.leases: list[Lease] = []
        self.heads: list[str] = [""]
        self.announced: dict[str, int] = {}
        self.turns: dict[str, int] = {}
        self.accepted: dict[str, Sent] = {}
        self.written: dict[str, Sent] = {}
        self.last: Sent | None = None
        self.data: st.DataObject

    async def open(self) -> Driver:
        async with client_for(self.url) as redis:
            await redis.flushall()
        driver = await self.stack.enter_async_context(open_driver(self.url))
        for worker in WORKERS:
            await driver.register(worker, lease_ms=LEASE_MS)
        return driver

    def teardown(self) -> None:
        try:
            if self.sound:
                self.wait(self.come_to_rest())
        finally:
            self.wait(self.stack.aclose())
            self.runner.close()

    async def come_to_rest(self) -> None:
        """Let one healthy worker carry out all that is left; every run must reach its end."""
        for _ in range(2 * len(self.oracle.runs) + 1):
            for run_id in await self.driver.queued():
                await self.driver.partition.call("ZADD", self.driver.keys.queue("a"), 1, run_id)
            claim = await self.driver.claim("healthy", crashes_max=CRASHES_MAX)
            for run_id in claim.exhausted:
                await self.driver.settle(run_id)
            for lease in (run.lease for run in claim.runs):
                checkout = await self.driver.checkout(lease)
                aborted = checkout.abort_reason is not None
                reason = StopReason.EXTERNAL_ABORT if aborted else StopReason.TEXT_RESPONSE
                inputs = [each.input_id for each in checkout.inputs]
                ends = unheard(lease, *inputs, reason=reason)
                await self.driver.finish(lease, reason, entries=ends)
        await self.driver.check(quiescent=True)

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    def code(self, coroutine: Coroutine[Any, Any, object]) -> str:
        """Carry out a transition and return the code that its script gave."""
        with suppress(RunlaneError):
            self.wait(coroutine)
        self.last = self.driver.last
        return self.last.code

    def make_due(self, run_ids: set[str]) -> None:
        key = self.driver.keys.queue("a")
        for run_id in sorted(run_ids):
            self.wait(self.driver.partition.call("ZADD", key, "XX", 1, run_id))

    def draw(self, values: Sequence[T], label: str) -> T:
        return self.data.draw(st.sampled_from(values), label=label)

    def draw_lease(self) -> Lease:
        held = [lease for lease in self.leases if self.oracle.holds(lease)]
        zombie = not held or self.draw([False, False, False, True], "zombie")
        return self.draw(self.leases if zombie else held, "lease")

    def draw_inputs(self, lease: Lease) -> list[str]:
        """Return what of that which waits for a run is settled now."""
        waiting = self.oracle.runs[lease.run_id].inputs
        return self.draw([waiting, [], waiting[:1], waiting[1:]], "settled") if waiting else []

    def draw_run(self) -> OracleRun:
        return self.draw(list(self.oracle.runs.values()), "run")

    def draw_head(self, lease: Lease) -> str:
        if self.draw([False, False, False, True], "stale"):
            return self.draw(self.heads, "head")
        return self.lane_of(lease).head

    def lane_of(self, lease: Lease) -> OracleLane:
        return self.oracle.lane((lease.session_id, lease.branch_id))

    def next_bodies(self, lease: Lease, count: int) -> list[AnyBody]:
        """Return what a worker would write next."""
        announced, turn = self.announced.get(lease.run_id), self.turns.get(lease.run_id, 0)
        bodies: list[AnyBody] = []
        if announced is None:
            bodies.append(started(lease))
        elif announced < lease.attempt:
            bodies.append(taken_over(lease))
        return [*bodies, *(said(lease, turn + n) for n in range(1, count + 1 - len(bodies)))]

    def note_written(self, lease: Lease, bodies: list[AnyBody]) -> None:
        if bodies:
            self.announced[lease.run_id] = lease.attempt
        for body in bodies:
            if isinstance(body, MessageAppended):
                self.turns[lease.run_id] = body.turn
        head: str = self.driver.last.reply[1].decode()
        self.heads.append(head)
        self.lane_of(lease).head = head
        self.written[lease.run_id] = self.driver.last

    def branch_off(self, session: str) -> None:
        """Begin the side branch of a session that was just made."""
        place = session, "side"
        if place not in self.oracle.branches:
            self.oracle.branches.add(place)
            self.oracle.lane(place).head = self.wait(self.driver.branch("side", session=session))

    def note_ended(self, run: OracleRun) -> None:
        """A run that had begun ends on its branch, whoever ends it."""
        end = self.wait(self.driver.run(run.run_id)).get("end", "")
        lane = self.oracle.lane(run.place)
        if run.begun and end and revision_of(end) > revision_of(lane.head):
            lane.head = end
            self.heads.append(end)

    @invariant()
    def nothing_is_wrong(self) -> None:
        space = self.wait(read_keyspace(self.driver.redis, self.driver.prefix))
        violations = [text for rule in RULES for text in rule(space)]
        assert [*space.faults, *violations] == []
        assert set(space.runs) == set(self.oracle.runs)
        assert len(space.values["idem:"]) == len(self.oracle.keys)
        for place, lane in self.oracle.lanes.items():
            name = "/".join(place)
            found = [space.lane_text(name, field) for field in ("active", "fence")]
            assert found == [lane.active, lane.fence]
            waiting = space.follow_ups.get(name, []), space.inboxes.get(name, [])
            assert waiting == (lane.follow_ups, lane.inbox)
            assert space.heads.get(place[0], {}).get(place[1], b"").decode() == lane.head
        for run in self.oracle.runs.values():
            assert ids_of(space.steering.get(run.run_id, [])) == run.inputs
            assert state_of(space, run.run_id) == (
                *(run.state, run.stop_reason, run.attempt),
                *(run.crashes, run.crashes_row, run.due),
            )
        self.sound = True


def ids_of(inputs: Sequence[str | bytes]) -> list[str]:
    """Return the ids of inputs as they are stored."""
    texts = [each.decode() if isinstance(each, bytes) else each for each in inputs]
    return [text.partition(" ")[0] for text in texts]


def state_of(space: Keyspace, run_id: str) -> tuple[object, ...]:
    score = space.queues.get("a", {}).get(run_id)
    counts = [int(space.run_text(run_id, name) or 0) for name in ("crashes", "crashes_row")]
    return (
        space.run_text(run_id, "state"),
        space.run_text(run_id, "stop_reason"),
        int(space.run_text(run_id, "attempt") or 0),
        *counts,
        score is not None and score < time.time() * 1000 + LEASE_MS / 2,
    )
