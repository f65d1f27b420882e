"""Ways to damage a sound keyspace, each with the rule that must notice and what it says."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec.structs import replace
from tests.checkers import branch_rules, lane_rules, run_rules, session_rules, steering_rules
from tests.checkers.invariants import Rule
from tests.checkers.scene import Scene
from tests.journal.builders import (
    heard,
    intent_of,
    outcome_of,
    result_of,
    said,
    started,
    taken_over,
    unheard,
)

from runlane.journal.lease import Lease
from runlane.journal.wire.codec import encode
from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import AbortRequested, AnyBody, RunFinished
from runlane.journal.wire.results import StopReason
from runlane.journal.wire.tree import BranchPromoted, Checkpoint

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


def _change(kind: str, nth: int = 0, **fields: bytes) -> Damage:
    """Change the nth entry of a kind in session "tree"."""

    def change(entries: list[dict[bytes, bytes]]) -> None:
        of_kind = [entry for entry in entries if entry[b"k"] == kind.encode()]
        of_kind[nth].update({name.encode(): value for name, value in fields.items()})

    return lambda scene: scene.rewrite(change, "tree")


def _end(*, output_in_parent: bool) -> bytes:
    """Return an end with the text of the record before it."""
    result = result_of(output="all")
    place: dict[str, Any] = {"run_id": "r", "branch_id": "main"}
    return encode(RunFinished(**place, result=result, output_in_parent=output_in_parent))


async def _record_of(scene: Scene, kind: str) -> str:
    """Return the id of the first record of a kind in session "tree"."""
    records = await scene.driver.records("tree")
    return next(record.record_id for record in records if record.kind == kind)


def _base_is(kind: str) -> Damage:
    """Let branch "side" begin at the first record of a kind."""

    async def damage(scene: Scene) -> None:
        parent = (await _record_of(scene, kind)).encode()
        await _change("branch_created", p=parent)(scene)

    return damage


async def _note_another_jump(scene: Scene) -> None:
    key = scene.driver.keys.jumps("tree")
    words = await scene.call("HGETALL", key)
    await scene.call("HSET", key, await _record_of(scene, "run_started"), words[1])


async def _note_of_the_other(scene: Scene) -> None:
    key = scene.driver.keys.jumps("tree")
    words = await scene.call("HGETALL", key)
    await scene.call("HSET", key, words[0], words[3])


async def _forget_the_jumps(scene: Scene) -> None:
    await scene.call("DEL", scene.driver.keys.jumps("tree"))


async def _checkpoint_out_of_order(scene: Scene) -> None:
    await scene.write(started(scene.lease))
    await scene.write(Checkpoint(messages=()))


def _answer(scene: Scene, call: int, **changes: Any) -> AnyBody:
    return replace(outcome_of(scene.message, call), **changes)


def _intent(scene: Scene, call: int, **changes: Any) -> AnyBody:
    return replace(intent_of(scene.message, call), **changes)


def _of_run(scene: Scene, run_id: str) -> Lease:
    return replace(scene.lease, run_id=run_id)


def _of_tree(scene: Scene) -> str:
    return scene.driver.keys.lane("tree", "side")


def _blob(scene: Scene) -> str:
    return scene.driver.keys.blob("tree", scene.blob)


async def _orphan(scene: Scene) -> None:
    await scene.call("ZADD", scene.driver.keys.orphans(), 1, f"tree/{scene.blob}")


async def _outlive(scene: Scene) -> None:
    await scene.driver.finish(scene.lease, StopReason.RUNTIME_ERROR)
    run_key = scene.driver.keys.run(scene.follow_up)
    await scene.call("HSET", run_key, "policy", "discard")


def _of_queued(scene: Scene) -> str:
    return scene.driver.keys.run(scene.queued)


def _inputs_of_queued(scene: Scene) -> str:
    return scene.driver.keys.steering(scene.queued)


async def _forget_the_waiting_input(scene: Scene) -> None:
    await scene.call("DEL", _inputs_of_queued(scene))
    await scene.call("HDEL", _of_queued(scene), "inputs")


async def _swap_inbox(scene: Scene) -> None:
    await scene.call("RPUSH", _inbox(scene), await scene.call("LPOP", _inbox(scene)))


async def _nothing(_: Scene) -> None:
    """A deployment at work is not at rest."""


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
    branch_rules.chains_are_sound: [
        (lambda s: s.rewrite(lambda entries: entries.pop(3)), "where revision 4 belongs"),
        (lambda s: s.rewrite(lambda entries: entries.pop()), "heads are"),
        (_change_last(b"p", b"1-1.abc"), "names parent '1-1.abc'"),
        (_change_last(b"h", b"0" * 24), "does not cover its parent and content"),
        (_change_last(b"d", b"\x80"), "does not cover its parent and content"),
        (_change_last(b"b", b"side"), "does not cover its parent and content"),
        (_field(_key("heads", "s"), "main", "7-7.abc"), "heads are"),
        (_field(_key("heads", "s"), "side", "7-7.abc"), "heads are"),
        (_field(_key("session", "s"), "rev", "99"), "rev is '99'"),
        (_field(_key("session", "s"), "trimmed", "2"), "where revision 3 belongs"),
        (_field(_key("deleted"), "s", "7"), "where revision 8 belongs"),
    ],
    branch_rules.jumps_are_noted: [
        (_forget_the_jumps, "a branch_created that is not noted"),
        (_forget_the_jumps, "a branch_promoted that is not noted"),
        (_field(_key("jumps", "s"), "9-9.abc", "x"), "notes a jump 9-9.abc, which is no record"),
        (_note_another_jump, "which is a run_started"),
        (_note_of_the_other, "is noted as"),
        (_change("branch_created", k=b"checkpoint"), "branch 'side' begins with a checkpoint"),
        (_change("branch_created", b=b"main"), "a branch_created on branch 'main'"),
        (_change("branch_promoted", b=b"side"), "a branch_promoted on branch 'side'"),
        (
            _change("run_started", 2, k=b"branch_created"),
            "'side' is created twice",
        ),
        (
            _change(
                "branch_promoted",
                d=encode(BranchPromoted(source_branch_id="side", previous_head_id="1-1.a")),
            ),
            "not '1-1.a'",
        ),
        (_change("branch_created", p=b"99-1.abc"), "is no earlier record"),
        (_base_is("run_queued"), "is on no branch"),
        (_base_is("run_started"), "is open at its base"),
    ],
    branch_rules.checkpoints_repeat_their_path: [
        (_change("checkpoint", d=encode(Checkpoint(messages=()))), "says Checkpoint(messages=()"),
        (lambda s: s.write(Checkpoint(messages=())), "stands in the middle of a turn"),
        (_checkpoint_out_of_order, "stands for records that do not follow"),
    ],
    branch_rules.lanes_know_their_branches: [
        (_field(_of_tree, "checkpoint"), "its checkpoint is ''"),
        (_field(_of_tree, "checkpoint", "1"), "its checkpoint is '1'"),
        (_field(_key("lane", "tree", "main"), "checkpoint", "1"), "checkpoint is '1', not ''"),
        (_field(_of_tree, "last_run"), "its last run is ('', "),
        (_field(_of_tree, "last_stop", "max_steps"), "'max_steps'), not"),
        (_field(_key("lane", "s", "main"), "last_run", "x"), "its last run is ('x', "),
    ],
    branch_rules.blobs_are_counted: [
        (lambda s: s.call("DEL", _blob(s)), "is gone, and 1 records name it"),
        (_field(_blob, "refs", "2"), "counts 2 records, 1 name it"),
        (lambda s: s.call("HSET", s.driver.keys.blob("s", "a"), "refs", 1), "0 name it"),
        (_field(_blob, "refs", "0"), "counts 0 records, is an orphan False"),
        (_orphan, "counts 1 records, is an orphan True"),
        (lambda s: s.call("SADD", s.driver.keys.blobs("s"), "a"), "s/a: is listed, and there is"),
        (lambda s: s.call("DEL", s.driver.keys.blobs("tree")), "is not listed"),
    ],
    session_rules.records_are_in_order: [
        (lambda s: s.write(started(s.lease)), "no run_started may follow"),
        (lambda s: s.write(replace(taken_over(s.done), attempt=2)), "is absent, no attempt"),
        (lambda s: s.call("DEL", _of_lease(s)), "is running, and does not exist"),
        (_change("run_finished", 1, b=b"@control"), "a run_finished of run"),
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
        (_field(_of_done, "begin"), "that it began at ''"),
        (_field(_of_done, "begin", "1-1.abc"), "that it began at '1-1.abc'"),
        (lambda s: s.call("PERSIST", _of_done(s)), "is completed, expires False"),
        (lambda s: s.call("PEXPIRE", _of_lease(s), 99_999), "is running, expires True"),
        (_field(_of_lease, "state", "odd"), "has state 'odd'"),
        (_field(_of_lease, "state", "completed"), "completed with 0 run_finished"),
        (_field(_of_done, "state", "running"), "running with 1 run_finished"),
        (_field(_of_done, "state", "failed"), "its result says completed"),
        (_field(_of_done, "stop_reason", "max_steps"), "its result says completed"),
        (_field(_of_done, "end"), "names end ''"),
        (_field(_of_done, "end", "1-1.abc"), "names end '1-1.abc'"),
        (_field(_of_lease, "end", "1-1.abc"), "names end '1-1.abc'"),
        *(
            (_field(_of_done, name, "x"), f"still has its {name}")
            for name in sorted(run_rules.OF_THE_LIVING)
        ),
        (_field(_of_lease, "job"), "its job is lost"),
    ],
    run_rules.outputs_are_stored_once: [
        (_change("run_finished", d=_end(output_in_parent=True)), "names that of its parent"),
        (_change("run_finished", d=_end(output_in_parent=False)), "repeats the text"),
        (_change("run_finished", p=b"1-1.abc"), "which has none"),
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
    steering_rules.inputs_wait_for_a_run_that_goes_on: [
        (
            lambda s: s.call("RPUSH", s.driver.keys.steering(s.done.run_id), "x y"),
            "is 'completed', and inputs wait for it",
        ),
        (lambda s: s.call("RPUSH", s.driver.keys.steering("x"), "x y"), "is '', and inputs wait"),
        (
            lambda s: s.call("RPUSH", s.driver.keys.steering(s.inbox[0]), "x y"),
            "is not active, and inputs wait for it",
        ),
        (
            lambda s: s.call("RPUSH", _inputs_of_queued(s), *["x y"] * 16),
            "17 inputs wait for it",
        ),
        (_field(_of_queued, "inputs"), "says that inputs wait False"),
        (_field(_of_lease, "inputs", "1"), "says that inputs wait True"),
    ],
    steering_rules.inputs_are_settled_once: [
        (lambda s: s.write(*heard(s.lease, s.applied)), "is settled 2 times"),
        (lambda s: s.write(*unheard(s.lease, s.applied)), "is settled 2 times"),
        (lambda s: s.write(*unheard(s.lease, s.waiting)), "is settled, and waits"),
        (_forget_the_waiting_input, "nothing tells what became of it"),
        (
            lambda s: s.call("SET", s.driver.keys.input(s.applied), f"{s.queued} 1"),
            "and came to another one",
        ),
        (
            lambda s: s.call("SET", s.driver.keys.input(s.waiting), f"{s.done.run_id} 1"),
            "and came to another one",
        ),
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
        (_nothing, ":steer:"),
        (lambda s: s.call("SET", s.driver.keys.partial("x"), "x"), "part:x: is not empty"),
    ],
}
"""By rule; None stands for what reading itself reports."""
