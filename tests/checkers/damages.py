"""Ways to damage a sound keyspace, each with the rule that must notice and what it says."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from msgspec.structs import replace
from tests.checkers import lane_rules, run_rules, session_rules
from tests.checkers.invariants import Rule
from tests.journal.builders import intent_of, outcome_of, result_of, said, started, taken_over
from tests.journal.driving import Driver

from runlane.journal.ids import new_run_id
from runlane.journal.lease import Lease
from runlane.journal.transitions.settle import encode_result
from runlane.journal.wire.jobs import FollowUpFailurePolicy
from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import AbortRequested, AnyBody, MessageAppended
from runlane.journal.wire.results import StopReason


@dataclass
class Scene:
    """A sound deployment with something of everything.

    Attributes:
        done: A run that completed, in session "done".
        lease: A run in its second attempt, in session "s".
        message: Its last response: three calls, of which the first has a result and the second
            has started.
        follow_up: Waits behind it.
        inbox: Wait behind it.
        queued: A run that nobody has claimed, in session "q".
    """

    driver: Driver
    done: Lease
    lease: Lease
    message: MessageAppended
    follow_up: str
    inbox: list[str]
    queued: str

    async def call(self, *command: Any) -> Any:
        return await self.driver.partition.call(*command)

    async def write(self, *bodies: AnyBody) -> None:
        """Journal records as the holder of the lease: the chain stays sound."""
        await self.driver.append(self.lease, bodies)

    async def rewrite(self, change: Callable[[list[dict[bytes, bytes]]], object]) -> None:
        """Change the entries of session "s" as they are stored; b"id" is the stream id."""
        key = self.driver.keys.log("s")
        entries = await cast("Any", self.driver.redis).xrange(key)
        fields = [{b"id": stream_id, **stored} for stream_id, stored in entries]
        change(fields)
        await self.call("DEL", key)
        for stored in fields:
            stream_id = stored.pop(b"id")
            words = [word for pair in stored.items() for word in pair]
            await self.call("XADD", key, stream_id, *words)


async def sound(driver: Driver) -> Scene:
    done = await driver.held(session="done", idempotency_key="k")
    await driver.begin(done)
    asked = said(done, calls=["look"])
    await driver.append(done, [asked, intent_of(asked, 0)])
    await driver.append(done, [outcome_of(asked, 0)])
    await driver.finish(done, entries=[said(done, 2)])
    lease = await driver.held()
    await driver.begin(lease)
    await driver.append(lease, [said(lease, 1)])
    await driver.expire(lease)
    lease = await driver.lease("w2")
    await driver.checkout(lease)
    message = said(lease, 2, calls=["a", "b", "c"])
    await driver.append(lease, [taken_over(lease), message, intent_of(message, 0)])
    await driver.append(lease, [outcome_of(message, 0), intent_of(message, 1)])
    inbox = [(await driver.submit()).run_id for _ in range(2)]
    policy = FollowUpFailurePolicy.CONTINUE
    follow_up = (await driver.submit("follow_up", policy=policy)).run_id
    failed = await driver.held(session="failed")
    await driver.submit("follow_up", session="failed")
    await driver.finish(failed, StopReason.RUNTIME_ERROR)
    await driver.settle((await driver.submit(session="d")).run_id, dead_reason="damaged")
    queued = (await driver.submit(session="q")).run_id
    return Scene(driver, done, lease, message, follow_up, inbox, queued)


Damage = Callable[[Scene], Awaitable[object]]


def _key(name: str, *ids: str) -> Callable[[Scene], str]:
    return lambda scene: getattr(scene.driver.keys, name)(*ids)


def _field(key: Callable[[Scene], str], *words: str) -> Damage:
    """HSET or, without a value, HDEL."""
    name = "HSET" if len(words) > 1 else "HDEL"
    return lambda scene: scene.call(name, key(scene), *words)


def _of_done(scene: Scene) -> str:
    return scene.driver.keys.run(scene.done.run_id)


def _of_lease(scene: Scene) -> str:
    return scene.driver.keys.run(scene.lease.run_id)


def _lane(scene: Scene) -> str:
    return scene.driver.keys.lane("s", "main")


def _inbox(scene: Scene) -> str:
    return scene.driver.keys.inbox("s", "main")


def _change_last(name: bytes, value: bytes) -> Damage:
    return lambda scene: scene.rewrite(lambda entries: entries[-1].update({name: value}))


def _answer(scene: Scene, call: int, **changes: Any) -> AnyBody:
    return replace(outcome_of(scene.message, call), **changes)


def _intent(scene: Scene, call: int, **changes: Any) -> AnyBody:
    return replace(intent_of(scene.message, call), **changes)


def _of_run(scene: Scene, run_id: str) -> Lease:
    return replace(scene.lease, run_id=run_id)


async def _outlive(scene: Scene) -> None:
    await scene.driver.finish(scene.lease, StopReason.RUNTIME_ERROR)
    run_key = scene.driver.keys.run(scene.follow_up)
    await scene.call("HSET", run_key, "policy", "discard")


async def _swap_inbox(scene: Scene) -> None:
    await scene.call("RPUSH", _inbox(scene), await scene.call("LPOP", _inbox(scene)))


async def _nothing(_: Scene) -> None:
    """A deployment at work is not at rest."""


OTHER_RESULT: Final = encode_result(replace(result_of(), turns=9))

DAMAGES: Final[dict[Rule | None, list[tuple[Damage, str]]]] = {
    None: [
        (lambda s: s.call("SET", f"{s.driver.keys.root}:stray:1", "x"), "no known kind"),
        (lambda s: s.call("SET", f"{s.driver.prefix}:elsewhere", "x"), "no known kind"),
        (lambda s: s.call("SET", s.driver.keys.lane("new", "main"), "x"), "is no hash"),
        (_change_last(b"d", b"\xc1"), "cannot be decoded"),
        (_change_last(b"k", b"teleported"), "unknown record kind"),
    ],
    session_rules.sessions_are_listed: [
        (lambda s: s.call("ZREM", s.driver.keys.sessions(), "s"), "session s: listed False"),
        (lambda s: s.call("DEL", s.driver.keys.log("q")), "not so its log: key"),
        (_field(_key("session", "s"), "agent"), "bound to no agent"),
    ],
    session_rules.chains_are_sound: [
        (lambda s: s.rewrite(lambda entries: entries.pop(3)), "where revision 4 belongs"),
        (lambda s: s.rewrite(lambda entries: entries.pop()), "heads are"),
        (_change_last(b"p", b"1-1.abc"), "names parent '1-1.abc'"),
        (_change_last(b"h", b"0" * 24), "does not cover its parent and content"),
        (_change_last(b"d", b"\x80"), "does not cover its parent and content"),
        (_change_last(b"b", b"side"), "does not cover its parent and content"),
        (_field(_key("heads", "s"), "main", "7-7.abc"), "heads are"),
        (_field(_key("heads", "s"), "side", "7-7.abc"), "heads are"),
        (_field(_key("session", "s"), "rev", "99"), "rev is '99'"),
    ],
    session_rules.records_are_in_order: [
        (lambda s: s.write(started(s.lease)), "no run_started may follow"),
        (lambda s: s.write(replace(taken_over(s.done), attempt=2)), "is absent, no attempt"),
        (lambda s: s.write(said(_of_run(s, new_run_id()))), "which does not exist"),
        (
            lambda s: s.write(
                AbortRequested(run_id=s.lease.run_id, branch_id="main", reason="enough")
            ),
            "a abort_requested of run",
        ),
    ],
    session_rules.attempts_write_one_after_another: [
        (lambda s: s.write(said(replace(s.lease, attempt=1), 3)), "attempt 1 wrote after 2"),
        (lambda s: s.write(taken_over(s.lease)), "attempt 2 began twice"),
        (lambda s: s.write(said(replace(s.lease, attempt=3), 3)), "attempt 3 begins with"),
        (lambda s: s.write(taken_over(replace(s.lease, attempt=3))), "was never issued"),
    ],
    session_rules.tool_calls_are_settled_once: [
        (lambda s: s.write(said(s.lease, 2)), "turn 2 after 2"),
        (lambda s: s.write(_intent(s, 1)), "is started twice"),
        (lambda s: s.write(_intent(s, 0)), "is started after it has a result"),
        (lambda s: s.write(_intent(s, 2, index=3)), "tool_started for no call"),
        (lambda s: s.write(_intent(s, 2, turn=1)), "tool_started for no call"),
        (lambda s: s.write(_intent(s, 2, operation_key="x")), "x names another call"),
        (lambda s: s.write(_answer(s, 0)), "has two results"),
        (lambda s: s.write(_answer(s, 1, index=3)), "tool_completed for no call"),
        (lambda s: s.write(_answer(s, 1, turn=1)), "tool_completed for no call"),
        (
            lambda s: s.write(_answer(s, 1, message=ToolMessage("c-c", "c", "done"))),
            "answers 'c-c'",
        ),
    ],
    run_rules.runs_match_their_records: [
        (_field(_of_done, "queued_id", "1-1.abc"), "its hash says"),
        (_field(_of_done, "agent", "b"), "its hash says"),
        (lambda s: s.call("COPY", _of_done(s), s.driver.keys.run("copy")), "has 0 run_queued"),
        (_field(_of_lease, "state", "odd"), "has state 'odd'"),
        (_field(_of_lease, "state", "completed"), "completed with 0 run_finished"),
        (_field(_of_done, "state", "running"), "running with 1 run_finished"),
        (_field(_of_done, "state", "failed"), "its result says completed"),
        (_field(_of_done, "stop_reason", "max_steps"), "its result says completed"),
        (_field(_of_done, "result"), "its result is damaged"),
        (_field(_of_done, "worker", "w1"), "still has its worker"),
        (_field(_of_lease, "job"), "its job is lost"),
        (lambda s: s.call("HSET", _of_done(s), "result", OTHER_RESULT), "run_finished says"),
    ],
    run_rules.arq_mirrors_the_runs: [
        (lambda s: s.call("SET", f"arq:job:{s.done.run_id}", "x"), "still has its ['job']"),
        (lambda s: s.call("SET", f"arq:in-progress:{s.done.run_id}", "x"), "['in-progress']"),
        (lambda s: s.call("SET", f"arq:result:{s.lease.run_id}", "x"), "arq has a result"),
    ],
    run_rules.nothing_belongs_to_no_run: [
        (lambda s: s.call("SET", s.driver.keys.partial(s.done.run_id), "x"), "partial text"),
        (
            lambda s: s.call("SET", s.driver.keys.idempotency("s", "x"), f"{s.done.run_id} x"),
            "is not of its session",
        ),
        (lambda s: s.call("ZADD", s.driver.keys.dead(), 1, "x"), "dead letter x: listed True"),
    ],
    lane_rules.runs_wait_in_one_place: [
        (lambda s: s.call("RPUSH", _inbox(s), s.lease.run_id), "in 2 places"),
        (lambda s: s.call("RPUSH", _inbox(s), s.inbox[0]), "in 2 places"),
        (lambda s: s.call("RPUSH", _inbox(s), s.done.run_id), "of lane done/main"),
        (lambda s: s.call("RPUSH", _inbox(s), "nobody"), "nobody, which does not exist"),
        (lambda s: s.call("LPOP", _inbox(s)), "in 0 places"),
        (_field(_lane, "active"), "in 0 places"),
    ],
    lane_rules.lanes_are_not_stranded: [
        (_field(_lane, "active"), "runs wait, but none is active"),
        (
            lambda s: s.call("ZREM", s.driver.keys.queue("a"), s.lease.run_id),
            "is not in queue 'a'",
        ),
        (lambda s: s.call("DEL", s.driver.keys.queues()), "but is not listed"),
        (
            lambda s: s.call("ZADD", s.driver.keys.queue("a"), 1, s.inbox[0]),
            "is not the head of its lane",
        ),
        (
            lambda s: s.call("ZADD", s.driver.keys.queue("b"), 1, s.lease.run_id),
            "is not the head of its lane",
        ),
    ],
    lane_rules.leases_match_states: [
        (_field(_lane, "fence"), "is running, fence ''"),
        (_field(_key("lane", "q", "main"), "fence", "1:x"), "is queued, fence '1:x'"),
        (_field(_key("lane", "done", "main"), "fence", "1:x"), "left without an active run"),
        (_field(_of_lease, "worker"), "is running, worker ''"),
        (
            lambda s: s.call("HSET", s.driver.keys.run(s.inbox[0]), "state", "leased"),
            "is leased, but not the active one",
        ),
        (_field(_key("lane", "done", "main"), "last_stop", "max_steps"), "has not ended as it"),
    ],
    lane_rules.lanes_run_in_order: [
        (_swap_inbox, "active, follow-ups, inbox are"),
        (lambda s: s.call("DEL", _inbox(s)), "active, follow-ups, inbox are"),
        (lambda s: s.call("HSET", _lane(s), "active", s.inbox[0]), "active, follow-ups"),
        (lambda s: s.write(started(_of_run(s, s.inbox[0]))), "when it was the turn of"),
        (_outlive, "outlived the failure that it depended on"),
    ],
    lane_rules.nothing_goes_on: [
        (_nothing, "1 runs are running at rest"),
        (_nothing, "4 runs are queued at rest"),
        (_nothing, "lane s/main: active"),
        (_nothing, "lane s/main: fence"),
        (_nothing, "q:a: is not empty at rest"),
        (_nothing, "inbox:s/main: is not empty at rest"),
        (_nothing, "next:s/main: is not empty at rest"),
        (lambda s: s.call("SET", s.driver.keys.partial("x"), "x"), "part:x: is not empty"),
    ],
}
"""By rule; None stands for what reading itself reports."""
