"""The tree of one session under every order of events that hypothesis can think of.

Two workers write, stale and fenced ones go on trying, equal texts are said on different branches,
replies are lost, records move to the archive, and the server fails over to an earlier state.
"""

import asyncio
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.checkers.invariants import RULES
from tests.checkers.keyspace import read_keyspace
from tests.journal.builders import outcome_of, result_of, said, started, taken_over
from tests.journal.driving import Driver, open_driver
from tests.journal.failover import Snapshot, fail_over, take_snapshot
from tests.journal.tree_oracle import Expected, OracleBranch, TreeOracle

from runlane.journal import tree
from runlane.journal.archive import Archive, FileStore
from runlane.journal.errors import SessionConflictError, SessionFencedError
from runlane.journal.lease import Lease
from runlane.journal.link import client_for
from runlane.journal.path import read_path
from runlane.journal.reader import read_records, read_records_back
from runlane.journal.transitions.archive_claim import archive_claim
from runlane.journal.transitions.entries import chained
from runlane.journal.upkeep.archiver import archive_session, read_batch, store_batch
from runlane.journal.wire.messages import AssistantMessage, UserMessage
from runlane.journal.wire.records import CONTROL_BRANCH, AnyBody, MessageAppended, RunFinished
from runlane.journal.wire.results import StopReason
from runlane.journal.wire.tree import BranchCreated, BranchIntent, BranchPromoted

T = TypeVar("T")

SESSION: Final = "s"
WORKERS: Final = ("w1", "w2")
NAMES: Final = ("a", "b", "c")
LEASE_MS: Final = 3_600_000


class TreeMachine(RuleBasedStateMachine):
    """One session; every lease that was ever issued may still be used."""

    url: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.driver = self.wait(self.open())
        self.oracle = TreeOracle()
        self.leases: list[Lease] = []
        self.run_ids: list[str] = []
        self.turns: dict[str, int] = {}
        self.ids: list[str] = []
        self.contents: dict[str, str] = {}
        self.snapshots: list[tuple[Snapshot, TreeOracle]] = []
        self.data: st.DataObject

    async def open(self) -> Driver:
        async with client_for(self.url) as redis:
            await redis.flushall()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        driver = await self.stack.enter_async_context(open_driver(self.url))
        driver.partition.archive = Archive(FileStore(Path(folder)))
        for worker in WORKERS:
            await driver.register(worker, lease_ms=LEASE_MS)
        return driver

    def teardown(self) -> None:
        self.wait(self.stack.aclose())
        self.runner.close()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    def draw(self, values: Sequence[T], label: str) -> T:
        return self.data.draw(st.sampled_from(values), label=label)

    def attempt(self, coroutine: Coroutine[Any, Any, T], expected: Expected) -> T | None:
        """Carry out what must succeed, or fail with exactly this error."""
        if expected is None:
            return self.wait(coroutine)
        with pytest.raises(expected) as caught:
            self.wait(coroutine)
        assert caught.type is expected
        return None

    # --- runs ---------------------------------------------------------------------------

    def submit(self) -> None:
        branch = self.draw(list(self.oracle.branches), "branch")
        submitted = self.wait(self.driver.submit(branch=branch))
        self.run_ids.append(submitted.run_id)
        lane = self.oracle.branches[branch]
        if lane.active:
            lane.inbox.append(submitted.run_id)
        else:
            lane.active = submitted.run_id

    def claim(self) -> None:
        """Take what is due, or what another worker left: its lease has ended."""
        for run_id in self.wait(self.driver.queued()):
            if self.draw([True, False], "due"):
                self.wait(self.make_due(run_id))
        worker = self.draw(WORKERS, "worker")
        claim = self.wait(
            self.driver.claim(worker, lease_ms=LEASE_MS, crashes_max=99, crashes_total_max=999)
        )
        for lease in (run.lease for run in claim.runs):
            lane = self.oracle.branches[lease.branch_id]
            assert lane.active == lease.run_id
            lane.fence = lease.fence
            self.leases.append(lease)
            head = self.wait(self.driver.checkout(lease)).head
            assert head == lane.head
            begun = self.oracle.open_run(head) == lease.run_id
            self.write(lease, [taken_over(lease) if begun else started(lease)], head)

    async def make_due(self, run_id: str) -> None:
        await self.driver.partition.call("ZADD", self.driver.keys.queue("a"), "XX", 1, run_id)

    def append(self) -> None:
        lease = self.draw_lease()
        turn = self.turns.get(lease.run_id, 0) + 1
        calls = self.draw([(), ("t",)], "calls")
        message = said(lease, turn, self.draw(["x", "y"], "text"), calls)
        results = [outcome_of(message, index) for index in range(len(calls))]
        self.write(lease, [message, *results], self.draw_head(lease))

    def checkpoint(self) -> None:
        """In a run, between two turns."""
        lease = self.draw_lease()
        head = self.oracle.branches.get(lease.branch_id, OracleBranch()).head
        path = self.wait(read_path(self.driver.partition, SESSION, head))
        body = path.project().checkpoint()
        if body is not None:
            self.write(lease, [body], self.draw_head(lease))

    def finish(self) -> None:
        lease = self.draw_lease()
        head = self.draw_head(lease)
        checkpoint = None
        if self.holds(lease) and self.draw([True, False], "checkpoint"):
            lane = self.oracle.branches[lease.branch_id]
            path = self.wait(read_path(self.driver.partition, SESSION, lane.head))
            checkpoint = path.project().after([end_of(lease)]).checkpoint()
        finishing = self.driver.finish(lease, head=head, checkpoint=checkpoint)
        if self.attempt(finishing, self.refusal(lease, head)) is None:
            return
        bodies: list[AnyBody] = [end_of(lease), *([checkpoint] if checkpoint else [])]
        self.note(lease.branch_id, bodies, head)
        self.leave(lease.branch_id)

    def hand_back(self) -> None:
        lease = self.draw_lease()
        assert self.wait(self.driver.hand_back(lease)) == self.holds(lease)
        if self.holds(lease):
            self.oracle.branches[lease.branch_id].fence = ""

    def abort_a_waiting_run(self) -> None:
        free = [
            name for name, lane in self.oracle.branches.items() if lane.active and not lane.fence
        ]
        if not free:
            return
        branch = self.draw(free, "branch")
        lane = self.oracle.branches[branch]
        begun = self.oracle.open_run(lane.head) == lane.active
        self.wait(self.driver.abort(lane.active))
        if begun:
            head = self.wait(tree.read_head(self.driver.partition, SESSION, branch))
            end = RunFinished(run_id=lane.active, branch_id=branch, result=result_of())
            self.oracle.add(branch, [head], [end], lane.head)
            self.ids.append(head)
        self.leave(branch)

    def write(self, lease: Lease, bodies: list[AnyBody], head: str) -> None:
        appending = self.driver.append(lease, bodies, head=head)
        if self.attempt(appending, self.refusal(lease, head)) is None:
            return
        self.note(lease.branch_id, bodies, head)
        turns = [body.turn for body in bodies if isinstance(body, MessageAppended)]
        self.turns[lease.run_id] = max([self.turns.get(lease.run_id, 0), *turns])
        self.reply_is_lost()

    def note(self, branch: str, bodies: Sequence[AnyBody], parent: str) -> None:
        """Note records that were just acknowledged: their ids follow from the head."""
        head: str = self.driver.last.reply[1].decode()
        last, inc = int(head.partition("-")[0]), head.partition("-")[2].partition(".")[0]
        digests = [each.digest for each in chained(branch, parent, bodies)]
        first = last - len(digests) + 1
        stored = head.rpartition(".")[2]
        ids = [f"{first + n}-{inc}.{digest}" for n, digest in enumerate(digests)]
        assert ids[-1].endswith(stored)
        self.ids += ids
        self.oracle.add(branch, ids, bodies, parent)

    def leave(self, branch: str) -> None:
        lane = self.oracle.branches[branch]
        lane.fence, lane.active = "", lane.inbox.pop(0) if lane.inbox else ""

    def reply_is_lost(self) -> None:
        """The same request again gets the same answer and changes nothing."""
        if self.draw([False, False, True], "lost reply"):
            sent = self.driver.last
            again = self.wait(self.driver.partition.resend(sent))
            assert (again[0], again[1]) == (b"DUP", sent.reply[1])

    def holds(self, lease: Lease) -> bool:
        lane = self.oracle.branches.get(lease.branch_id, OracleBranch())
        return bool(lane.fence) and (lane.fence, lane.active) == (lease.fence, lease.run_id)

    def refusal(self, lease: Lease, head: str) -> Expected:
        if not self.holds(lease):
            return SessionFencedError
        return None if head == self.oracle.branches[lease.branch_id].head else SessionConflictError

    def draw_lease(self) -> Lease:
        held = [lease for lease in self.leases if self.holds(lease)]
        zombie = not held or self.draw([False, False, False, True], "zombie")
        return self.draw(self.leases if zombie else held, "lease")

    def draw_head(self, lease: Lease) -> str:
        stale = bool(self.ids) and self.draw([False, False, False, True], "stale")
        if stale:
            return self.draw(self.ids, "head")
        return self.oracle.branches.get(lease.branch_id, OracleBranch()).head

    # --- the tree -----------------------------------------------------------------------

    def fork(self) -> None:
        intent = self.draw([BranchIntent.FORK, BranchIntent.ROLLBACK], "intent")
        source = self.draw([*self.oracle.branches, "nowhere"], "source")
        record_id = self.draw([None, *self.ids], "record")
        name = self.draw(NAMES, "name")
        expected, base = self.oracle.forked(source, record_id, name)
        forking = tree.fork(
            self.driver.partition,
            SESSION,
            source,
            intent=intent,
            record_id=record_id,
            name=name,
        )
        if self.attempt(forking, expected) is not None:
            self.begun(name, BranchCreated(intent=intent, source_branch_id=source), base)

    def retry(self) -> None:
        run_id, name = self.draw(self.run_ids, "run"), self.draw(NAMES, "name")
        known = self.wait(self.driver.partition.call("EXISTS", self.driver.keys.run(run_id)))
        expected, base = self.oracle.retried(run_id, bool(known), name)
        retrying = tree.prepare_retry(self.driver.partition, SESSION, run_id, name=name)
        retry = self.attempt(retrying, expected)
        if retry is not None:
            begin = self.oracle.begin_of(run_id)
            assert begin is not None
            assert (retry.task, retry.retried_run_id) == ("hi", run_id)
            body = BranchCreated(
                intent=BranchIntent.RETRY, source_branch_id=begin.branch, retried_run_id=run_id
            )
            self.begun(name, body, base)

    def promote(self) -> None:
        source = self.draw([*self.oracle.branches, "nowhere"], "source")
        previous = self.oracle.branches["main"].head
        base = self.oracle.branches.get(source, OracleBranch()).head
        promoting = tree.follow(self.driver.partition, SESSION, source)
        if self.attempt(promoting, self.oracle.promoted(source)) is not None:
            self.begun(
                "main", BranchPromoted(source_branch_id=source, previous_head_id=previous), base
            )

    def begun(self, branch: str, body: AnyBody, base: str) -> None:
        self.note(branch, [body], base)
        sent = self.driver.last
        self.reply_is_lost()
        assert sent.reply[1].decode() == self.oracle.branches[branch].head

    # --- what happens to the server and the archive ---------------------------------------

    def archive(self) -> None:
        """Move what may be moved; an archiver may die between two steps, and another goes on."""
        self.wait(self.archive_as(self.draw(WORKERS, "archiver")))

    async def archive_as(self, worker: str) -> None:
        partition = self.driver.partition
        partition.cold_ms = self.draw([0, LEASE_MS], "cold after ms")
        await partition.call("ZADD", self.driver.keys.archive(), 1, SESSION)
        for claim in await archive_claim(partition, worker_id=worker, count=1):
            if self.draw([True, False, False], "dies after the segment"):
                await store_batch(partition, claim, await read_batch(partition, claim, count=3))
            else:
                await archive_session(partition, claim, segment_records=3)

    def remember(self) -> None:
        self.snapshots.append((self.wait(take_snapshot(self.driver.redis)), deepcopy(self.oracle)))

    def failover(self) -> None:
        """The server comes back as it was some time ago, with another replication id."""
        if not self.snapshots:
            return
        at = self.data.draw(st.integers(0, len(self.snapshots) - 1), label="state")
        snapshot, oracle = self.snapshots[at]
        self.wait(fail_over(self.driver.redis, snapshot))
        self.oracle = deepcopy(oracle)
        del self.snapshots[at + 1 :]

    STEPS = (
        *(submit, claim, append, append, finish, finish, hand_back, abort_a_waiting_run),
        *(submit, claim, append, finish, fork, fork, retry, promote, checkpoint),
        *(archive, remember, failover),
    )

    @rule(data=st.data(), step=st.sampled_from(STEPS))
    def something_happens(self, data: st.DataObject, step: "Callable[[TreeMachine], None]") -> None:
        """One rule: hypothesis leaves out whole rules, and a tree needs most of them."""
        self.data = data
        if not self.run_ids:
            step = TreeMachine.submit
        elif not self.leases:
            step = TreeMachine.claim
        step(self)

    # --- what must hold ---------------------------------------------------------------------

    @invariant()
    def nothing_is_wrong(self) -> None:
        self.wait(self.compare())

    async def compare(self) -> None:
        partition = self.driver.partition
        space = await read_keyspace(self.driver.redis, self.driver.prefix)
        assert [*space.faults, *(text for check in RULES for text in check(space))] == []
        records = [record async for record in read_records(partition, SESSION)]
        assert [record.revision for record in records] == list(range(1, len(records) + 1))
        backwards = [record async for record in read_records_back(partition, SESSION)]
        assert backwards == records[::-1]
        ours = [record for record in records if record.branch_id != CONTROL_BRANCH]
        assert [(record.record_id, record.parent_id, record.branch_id) for record in ours] == [
            (node.record_id, node.parent, node.branch) for node in self.oracle.in_order()
        ]
        for record in records:
            stream_id, _, digest = record.record_id.partition(".")
            assert self.contents.setdefault(stream_id, digest) == digest, "an id came back"
        if not self.run_ids or not records:
            return
        branches = await tree.list_branches(partition, SESSION)
        assert {branch.branch_id: branch.head_id or "" for branch in branches} == {
            name: branch.head for name, branch in self.oracle.branches.items()
        }
        for name, branch in self.oracle.branches.items():
            await self.compare_checkout(name, branch.head)
        if ours:
            await self.compare_checkout("main", ours[len(ours) // 2].record_id)

    async def compare_checkout(self, branch: str, record_id: str) -> None:
        """The fold of a checkpoint and its tail is the fold of the whole history."""
        found = await tree.check_out(self.driver.partition, SESSION, branch, record_id or None)
        assert [
            message.content
            for message in found.messages
            if isinstance(message, UserMessage | AssistantMessage)
        ] == self.oracle.texts(record_id)
        assert (found.open_run or "") == self.oracle.open_run(record_id)


def end_of(lease: Lease) -> RunFinished:
    return RunFinished(
        run_id=lease.run_id,
        branch_id=lease.branch_id,
        result=result_of(StopReason.TEXT_RESPONSE),
    )
