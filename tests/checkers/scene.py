"""A sound keyspace with something of everything."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from msgspec.structs import replace
from tests.journal.builders import heard, intent_of, outcome_of, said, taken_over
from tests.journal.driving import Driver

from runlane.journal.lease import Lease
from runlane.journal.wire.jobs import FollowUpFailurePolicy
from runlane.journal.wire.records import AnyBody, MessageAppended
from runlane.journal.wire.results import StopReason

Change = Callable[[list[dict[bytes, bytes]]], object]


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
        applied: An input that it has heard.
        queued: A run that nobody has claimed, in session "q".
        waiting: An input that it is to hear.
        blob: What a record in session "tree" names. There branch "side" begins at the end of the
            first run, and `main` goes on from a checkpoint on "side".
    """

    driver: Driver
    done: Lease
    lease: Lease
    message: MessageAppended
    follow_up: str
    inbox: list[str]
    applied: str
    queued: str
    waiting: str
    blob: str

    async def call(self, *command: Any) -> Any:
        return await self.driver.partition.call(*command)

    async def write(self, *bodies: AnyBody) -> None:
        """Journal records as the holder of the lease: the chain stays sound."""
        await self.driver.append(self.lease, bodies)

    async def rewrite(self, change: Change, session: str = "s") -> None:
        """Change the entries of a session as they are stored; b"id" is the stream id."""
        key = self.driver.keys.log(session)
        entries = await cast("Any", self.driver.redis).xrange(key)
        fields = [{b"id": stream_id, **stored} for stream_id, stored in entries]
        change(fields)
        await self.call("DEL", key)
        for stored in fields:
            stream_id = stored.pop(b"id")
            words = [word for pair in stored.items() for word in pair]
            await self.call("XADD", key, stream_id, *words)


async def sound(driver: Driver) -> Scene:
    blob = await _tree(driver)
    done = await driver.held(session="done", idempotency_key="k")
    await driver.begin(done)
    asked = said(done, calls=["look"])
    await driver.append(done, [asked, intent_of(asked, 0)])
    await driver.append(done, [outcome_of(asked, 0)])
    await driver.finish(done, entries=[said(done, 2)])
    lease = await driver.held()
    await driver.begin(lease)
    await driver.append(lease, [said(lease, 1)])
    applied = await _steer(driver, "s")
    await driver.expire(lease)
    lease = await driver.lease("w2")
    await driver.checkout(lease)
    message = said(lease, 2, calls=["a", "b", "c"])
    told = heard(lease, applied, turn=2)
    await driver.append(lease, [taken_over(lease), *told, message, intent_of(message, 0)])
    await driver.append(lease, [outcome_of(message, 0), intent_of(message, 1)])
    inbox = [(await driver.submit()).run_id for _ in range(2)]
    policy = FollowUpFailurePolicy.CONTINUE
    follow_up = (await driver.submit("follow_up", policy=policy)).run_id
    failed = await driver.held(session="failed")
    await driver.submit("follow_up", session="failed")
    await driver.finish(failed, StopReason.RUNTIME_ERROR)
    await driver.settle((await driver.submit(session="d")).run_id, dead_reason="damaged")
    queued = (await driver.submit(session="q")).run_id
    waiting = await _steer(driver, "q")
    return Scene(driver, done, lease, message, follow_up, inbox, applied, queued, waiting, blob)


async def _steer(driver: Driver, session: str) -> str:
    receipt = await driver.steer(session=session)
    assert receipt.input_id is not None
    return receipt.input_id


async def _tree(driver: Driver) -> str:
    lease = await driver.held(session="tree")
    await driver.begin(lease)
    blob = await driver.put_blob(b"much", session="tree")
    asked = said(lease, calls=["look"])
    await driver.append(lease, [asked, intent_of(asked, 0)])
    await driver.append(lease, [replace(outcome_of(asked, 0), full=blob)])
    end = await driver.finish(lease, entries=[said(lease, 2, "all")], output="all")
    await driver.branch("side", session="tree", base=end.head)
    await driver.completed(session="tree")
    await driver.completed_with_checkpoint(session="tree", branch="side")
    await driver.promote("side", session="tree")
    continued = await driver.held(session="tree", intent="continue")
    await driver.begin(continued)
    await driver.finish(continued, StopReason.MAX_STEPS)
    return blob.digest
