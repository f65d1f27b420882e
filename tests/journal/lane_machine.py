"""Lanes under every order of events that hypothesis can think of, compared with the oracle."""

from typing import TYPE_CHECKING, Final
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.journal.builders import delta, heard, job_of, unheard
from tests.journal.lane_state import LEASE_MS, LaneState, ids_of
from tests.journal.oracle import (
    CRASHES_MAX,
    CRASHES_TOTAL_MAX,
    WORKERS,
)

from runlane.journal.wire.jobs import FollowUpFailurePolicy
from runlane.journal.wire.records import RunStarted
from runlane.journal.wire.results import StopReason

if TYPE_CHECKING:
    from collections.abc import Callable

PLACES: Final = (("s", "main"), ("s", "side"), ("t", "main"))
STOP_REASONS: Final = (
    StopReason.TEXT_RESPONSE,
    StopReason.MAX_STEPS,
    StopReason.TOOL_REJECTED,
    StopReason.EXTERNAL_ABORT,
)
REPEATED: Final = {
    ("submit", "OK"): "EXISTS",
    ("append", "OK"): "DUP",
    ("finish", "OK"): "DUP",
    ("hand_back", "OK"): "FENCED",
    ("settle", "OK"): "ENDED",
}
"""Script and code → the code that the same request gets when it comes again at once."""


class LaneMachine(LaneState):
    """Three lanes, three workers; every lease that was ever issued may still be used."""

    def submit(self) -> None:
        intent = self.draw(["run", "follow_up", "run", "continue"], "intent")
        session, branch = self.draw(PLACES, "place")
        task = self.draw(["x", "y"], "task")
        key = self.draw([None, None, None, "k", "l"], "key")
        policy = self.draw(list(FollowUpFailurePolicy), "policy")
        self.jobs += 1
        run_id = str(UUID(int=self.jobs))  # the same order each time, for hypothesis to replay
        job = job_of(
            intent, session=session, branch=branch, task=task, policy=policy, run_id=run_id
        )
        expected = self.oracle.submit(job, key)
        assert self.code(self.driver.submit_job(job, idempotency_key=key)) == expected
        if expected == "OK":
            self.accepted[job.run_id] = self.driver.last
            self.branch_off(session)

    def claim(self) -> None:
        self.claim_for(self.draw(WORKERS, "worker"))

    def claim_for(self, worker: str) -> None:
        slots = self.draw([5, 2, 1], "slots")
        due, count = self.oracle.claimable(slots)
        last_chances, busy = self.oracle.last_chances(), self.oracle.holds_suspect(worker)
        claim = self.wait(
            self.driver.claim(
                worker,
                slots=slots,
                lease_ms=LEASE_MS,
                crashes_max=CRASHES_MAX,
                crashes_total_max=CRASHES_TOTAL_MAX,
            )
        )
        self.last = self.driver.last
        named = [*(run.lease.run_id for run in claim.runs), *claim.exhausted]
        assert set(named) <= due
        assert len(named) == len(set(named))
        taken = last_chances.intersection(named)
        assert len(taken) + busy <= 1
        put_off = count - len(named)
        assert 0 <= put_off <= len(last_chances - taken) * (len(taken) + busy)
        self.make_due(due.difference(named))
        for run_id in claim.exhausted:
            assert self.oracle.claimed(run_id, worker) is None
        for lease in (run.lease for run in claim.runs):
            assert lease.fence not in {other.fence for other in self.leases}
            run = self.oracle.claimed(lease.run_id, worker, lease.fence)
            assert run is not None
            assert (lease.attempt, lease.cause or "") == (run.attempt, run.cause)
            self.leases.append(lease)

    def checkout(self) -> None:
        lease = self.draw_lease()
        expected = self.oracle.checkout(lease)
        assert self.code(self.driver.checkout(lease)) == expected
        if expected == "OK":
            head, reason, inc, _, elapsed_ms, inputs = self.driver.last.reply[1:]
            assert head.decode() == self.lane_of(lease).head
            assert bool(reason) == self.oracle.runs[lease.run_id].abort
            assert inc.isdigit()
            assert elapsed_ms >= 0
            assert ids_of(inputs) == self.oracle.runs[lease.run_id].inputs

    def begin(self) -> None:
        self.claim()
        self.checkout()

    def a_worker_crashes(self) -> None:
        self.lease_ends()
        self.claim()

    def only_one_worker_survives(self) -> None:
        survivor = self.draw(WORKERS, "survivor")
        active = {lane.active for lane in self.oracle.lanes.values() if lane.active}
        self.make_due(active)
        for run_id in active:
            self.oracle.runs[run_id].due = True
        for _ in active:
            self.claim_for(survivor)

    def append(self) -> None:
        lease = self.draw_lease()
        bodies = self.next_bodies(lease, self.draw([1, 2, 3], "records"))
        inputs = self.draw_inputs(lease)
        bodies += heard(lease, *inputs)
        head, progress = self.draw_head(lease), self.draw([False, True], "progress")
        begins = any(isinstance(body, RunStarted) for body in bodies)
        expected = self.oracle.append(lease, head, begins=begins, progress=progress, settled=inputs)
        sending = self.driver.append(lease, bodies, head=head, progress=progress)
        assert self.code(sending) == expected
        if expected == "OK":
            self.note_written(lease, bodies)
            waiting = self.oracle.runs[lease.run_id].inputs
            assert [*map(ids_of, self.driver.last.reply[4:])] == [waiting] * bool(waiting)

    def finish(self) -> None:
        lease = self.draw_lease()
        bodies = self.next_bodies(lease, self.draw([0, 2], "records"))
        inputs = self.draw_inputs(lease)
        bodies += unheard(lease, *inputs)
        head, stop_reason = self.draw_head(lease), self.draw(STOP_REASONS, "stop reason")
        begins = any(isinstance(body, RunStarted) for body in bodies)
        expected = self.oracle.finish(lease, head, stop_reason, begins=begins, settled=inputs)
        sending = self.driver.finish(lease, stop_reason, entries=bodies, head=head)
        assert self.code(sending) == expected
        if expected == "OK":
            self.note_written(lease, bodies)

    def hand_back(self) -> None:
        lease = self.draw_lease()
        expected = self.oracle.hand_back(lease)
        assert self.code(self.driver.hand_back(lease)) == expected

    def publish(self) -> None:
        lease = self.draw_lease()
        expected = self.oracle.publish(lease)
        assert self.code(self.driver.publish(lease, delta(lease), text="y")) == expected

    def renew(self) -> None:
        lease = self.draw_lease()
        renewal = self.wait(self.driver.renew(lease, lease_ms=LEASE_MS))
        assert renewal.lost == (() if self.oracle.renew(lease) else (lease.run_id,))

    def steer(self) -> None:
        session, branch = self.draw(PLACES, "place")
        for _ in range(self.draw([1, 1, 2, 17], "inputs")):
            expected = self.oracle.steer((session, branch))
            assert self.code(self.driver.steer(session=session, branch=branch)) == expected
            run_id, size = self.driver.last.reply[1:]
            if expected == "ACCEPTED":
                input_id = str(self.driver.last.command[6])
                run = self.oracle.steered((session, branch), input_id)
                assert (run_id.decode(), size) == (run.run_id, len(run.inputs))
                self.accepted[input_id] = self.driver.last

    def abort(self) -> None:
        run = self.draw_run()
        expected = self.oracle.abort(run.run_id)
        assert self.code(self.driver.abort(run.run_id)) == expected
        self.note_ended(run)

    def settle(self) -> None:
        run, stop_reason = self.draw_run(), self.draw(STOP_REASONS[1:], "stop reason")
        fence = self.draw([self.oracle.lane(run.place).fence, ""], "fence")
        expected = self.oracle.settle(run.run_id, stop_reason, fence)
        assert self.code(self.driver.settle(run.run_id, stop_reason, fence=fence)) == expected
        self.note_ended(run)

    def lease_ends(self) -> None:
        """As if the worker had gone silent, or an operator stole the run."""
        active = [lane.active for lane in self.oracle.lanes.values() if lane.active]
        if active:
            run = self.oracle.runs[self.draw(active, "run")]
            self.make_due({run.run_id})
            run.due = True

    def a_failover_forgets_the_last_fence(self) -> None:
        """Its number will be issued again, with another nonce."""
        lease = self.draw(self.leases, "lease")
        key = self.driver.keys.lane(lease.session_id, lease.branch_id)
        number = lease.fence.partition(":")[0]
        if not self.lane_of(lease).fence:
            self.wait(self.driver.partition.call("HSET", key, "fence_n", int(number) - 1))

    def the_last_reply_is_lost(self) -> None:
        if self.last is None:
            return
        name, code, reply = self.last.script.name, self.last.code, self.last.reply
        again = self.wait(self.driver.partition.resend(self.last))
        if name == "claim":
            assert again[1:] == reply[1:]
        elif name == "abort" and reply[1] == 1:
            assert again[0] == b"ENDED"
        else:
            assert again[0].decode() == REPEATED.get((name, code), code)
        if code in ("OK", "ACCEPTED") and name in ("submit", "append", "finish", "steer"):
            assert again[1:] == reply[1:]

    def a_request_comes_again_much_later(self) -> None:
        sent = self.draw([*self.accepted.values(), *self.written.values()], "request")
        code = {"submit": b"EXISTS", "steer": b"ACCEPTED"}.get(sent.script.name, b"DUP")
        again = self.wait(self.driver.partition.resend(sent))
        assert again[:2] == [code, sent.reply[1]]

    STEPS = (
        *(submit, submit, begin, begin, append, append, finish, finish, a_worker_crashes),
        *(claim, checkout, hand_back, publish, renew, abort, settle, lease_ends),
        *(a_worker_crashes, only_one_worker_survives, a_failover_forgets_the_last_fence),
        *(the_last_reply_is_lost, a_request_comes_again_much_later, steer, steer),
    )

    @rule(data=st.data(), step=st.sampled_from(STEPS))
    def something_happens(self, data: st.DataObject, step: "Callable[[LaneMachine], None]") -> None:
        """One rule: hypothesis leaves out whole rules, and lanes need most of them to get far."""
        self.data = data
        self.sound = False
        if not self.oracle.runs:
            step = LaneMachine.submit
        elif not self.leases:
            step = self.draw([LaneMachine.submit, LaneMachine.claim], "first")
        step(self)
