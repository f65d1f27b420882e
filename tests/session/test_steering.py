"""What is said to a run reaches its model, wherever the run stands; or the journal says why not."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.journal.builders import heard, said, started
from tests.journal.driving import RETRY_S, Driver
from tests.journal.failover import fail_over, take_snapshot
from tests.producer.support import until
from tests.session.steered import Speaker, carried_out, kinds
from tests.session.test_diverged import loss_of, trail_of, write

from runlane.journal.transitions import append
from runlane.journal.transitions.inputs import steering
from runlane.journal.wire.control import ControlInput
from runlane.journal.wire.messages import AssistantMessage, ModelToolCall, UserMessage
from runlane.journal.wire.records import SteeringDiscarded
from runlane.journal.wire.results import AgentRunResult, StopReason
from runlane.journal.wire.tree import SteeringApplied
from runlane.worker import (
    BehaviorDecision,
    BehaviorHook,
    ModelProviderError,
    StepOutcome,
    ToolControl,
    ToolEffect,
    TurnSnapshot,
    tool,
)
from runlane.worker.control import SteeringInbox
from runlane.worker.runner.signals import follow_control
from runlane.worker.session.diverged import lost_suffix

FIRST, SECOND = AssistantMessage("first"), AssistantMessage("second")


def once(act: Callable[[], Any], *, request: int = 1) -> Callable[[int], Any]:
    """Return what happens during one request of the model."""

    async def meanwhile(number: int) -> None:
        if number == request:
            await act()

    return meanwhile


async def bodies(driver: Driver, kind: type) -> list[Any]:
    return [record.body for record in await driver.records() if isinstance(record.body, kind)]


async def test_a_run_that_would_have_completed_takes_another_turn(driver: Driver) -> None:
    await driver.submit()
    model = Speaker([FIRST, SECOND], once(lambda: driver.steer("louder")))
    async with driver.hearing(driver.keys.events("s")) as told:
        result = await carried_out(driver, model)
    assert (result.output, result.turns) == ("second", 2)
    assert kinds(await driver.records()) == [
        *("run_started", "message_appended", "steering_applied", "message_appended"),
        "run_finished",
    ]
    assert model.asked[1].messages[-2:] == (FIRST, UserMessage("louder"))
    (applied,) = await bodies(driver, SteeringApplied)
    assert applied.target_turn == 2
    deltas = [message for message in told if b"assistant_text_delta" in message]
    assert [b"first" in message for message in deltas] == [True, False]
    completed = [message for message in told if b"turn_completed" in message]
    assert len(completed) == 2


async def test_what_was_said_before_the_first_turn_is_heard_in_it(driver: Driver) -> None:
    await driver.submit()
    for content in ("one", "two"):
        await driver.steer(content)
    model = Speaker([FIRST])
    assert (await carried_out(driver, model)).turns == 1
    texts = [message.content for message in model.asked[0].messages]
    assert texts == ["hi", "one", "two"]


async def test_each_of_many_late_words_is_heard_once(driver: Driver) -> None:
    await driver.submit()

    async def speak(number: int) -> None:
        if number < 6:
            for part in range(number):
                await driver.steer(f"{number}.{part}")

    model = Speaker([FIRST] * 6, speak)
    assert (await carried_out(driver, model)).turns == 6
    applied = [body.content for body in await bodies(driver, SteeringApplied)]
    assert applied == [f"{number}.{part}" for number in range(1, 6) for part in range(number)]


async def test_a_tool_that_completes_the_run_lets_it_hear_what_was_said(driver: Driver) -> None:
    await driver.submit()

    @tool(effect=ToolEffect.READ_ONLY)
    async def end() -> StepOutcome:
        if not await bodies(driver, SteeringApplied):
            await driver.steer("not yet")
        return StepOutcome("over", ToolControl.COMPLETE)

    ending = AssistantMessage(tool_calls=(ModelToolCall("c", "end"),))
    result = await carried_out(driver, Speaker([ending, ending]), tools=[end])
    assert (result.stop_reason, result.turns) == (StopReason.TOOL_COMPLETION, 2)
    assert [body.content for body in await bodies(driver, SteeringApplied)] == ["not yet"]


async def test_an_abort_wins_over_what_was_said(driver: Driver) -> None:
    run_id = (await driver.submit()).run_id

    async def speak() -> None:
        await driver.steer("louder")
        await driver.abort(run_id, "enough")

    result = await carried_out(driver, Speaker([FIRST], once(speak)))
    assert (result.stop_reason, result.error) == (StopReason.EXTERNAL_ABORT, "enough")
    (discarded,) = await bodies(driver, SteeringDiscarded)
    assert (discarded.content, discarded.reason) == ("louder", StopReason.EXTERNAL_ABORT)
    assert kinds(await driver.records())[-2:] == ["steering_discarded", "run_finished"]


async def test_a_run_that_fails_says_what_it_did_not_hear(driver: Driver) -> None:
    await driver.submit()
    model = Speaker([ModelProviderError("no")], once(lambda: driver.steer("louder")))
    result = await carried_out(driver, model)
    assert result.stop_reason is StopReason.PROVIDER_ERROR
    (discarded,) = await bodies(driver, SteeringDiscarded)
    assert (discarded.content, discarded.reason) == ("louder", StopReason.PROVIDER_ERROR)


class Stopper(BehaviorHook):
    """Stops the run at one moment, whatever is said to it."""

    def __init__(self, moment: str, driver: Driver) -> None:
        self.moment = moment
        self.driver = driver
        self.asked = 0

    async def on_run_start(self, snapshot: TurnSnapshot, **_: Any) -> BehaviorDecision | None:
        return await self._at("on_run_start")

    async def after_turn(self, snapshot: TurnSnapshot, **_: Any) -> BehaviorDecision | None:
        return await self._at("after_turn")

    async def _at(self, moment: str) -> BehaviorDecision | None:
        if moment != self.moment:
            return None
        self.asked += 1
        if self.asked == 1:
            await self.driver.steer("go on")
        return BehaviorDecision.stop("stopped")


@pytest.mark.parametrize("moment", ["on_run_start", "after_turn"])
async def test_a_hook_that_stops_the_run_again_and_again_is_obeyed(
    driver: Driver, moment: str
) -> None:
    await driver.submit()

    @tool(effect=ToolEffect.READ_ONLY)
    async def look() -> str:
        return "seen"

    looking = AssistantMessage(tool_calls=(ModelToolCall("c", "look"),))
    hook = Stopper(moment, driver)
    result = await carried_out(driver, Speaker([looking]), tools=[look], behavior_hooks=[hook])
    assert (result.stop_reason, result.output) == (StopReason.BEHAVIOR_STOP, "stopped")
    assert hook.asked == 2
    (discarded,) = await bodies(driver, SteeringDiscarded)
    assert (discarded.content, discarded.reason) == ("go on", StopReason.BEHAVIOR_STOP)


async def test_an_attempt_that_finds_an_answer_and_something_said_goes_on(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.append(lease, [said(lease, text="first")])
    await driver.steer("louder")
    await driver.expire(lease)
    model = Speaker([SECOND])
    assert (await carried_out(driver, model)).output == "second"
    assert model.asked[0].messages[-2:] == (FIRST, UserMessage("louder"))
    assert len(await bodies(driver, SteeringApplied)) == 1


async def test_what_comes_right_before_the_end_is_heard_or_discarded(driver: Driver) -> None:
    await driver.submit()

    class Late(BehaviorHook):
        async def on_run_end(
            self, snapshot: TurnSnapshot, result: AgentRunResult, **_: Any
        ) -> None:
            if result.turns < 3:
                await driver.steer(f"after turn {result.turns}")

    result = await carried_out(driver, Speaker([FIRST] * 3), behavior_hooks=[Late()])
    assert result.turns == 3
    applied = [body.content for body in await bodies(driver, SteeringApplied)]
    assert applied == ["after turn 1", "after turn 2"]


def test_an_inbox_keeps_the_order_in_which_things_were_said() -> None:
    one, two, three = (steering(name, name) for name in ("one", "two", "three"))
    inbox = SteeringInbox()
    inbox.add(two)  # the signal of the first one was missed
    inbox.add(two)
    assert [*inbox.waiting] == [two]
    inbox.update([one, two])
    inbox.add(three)
    assert [*inbox.waiting] == [one, two, three]
    inbox.update([one, two])  # what was said since the server answered stays
    inbox.update([])
    assert [*inbox.waiting] == [one, two, three]
    inbox.settle(["one", "unknown"])
    inbox.add(one)  # the signal was slower than the journal
    inbox.update([one, two])
    assert [*inbox.waiting] == [two, three]


async def test_a_worker_is_told_what_is_said_to_its_runs(driver: Driver) -> None:
    lease = await driver.held()
    told: list[tuple[str, ...]] = []
    given: list[ControlInput] = []

    def note(*words: str) -> None:
        told.append(words)

    def steer(run_id: str, fence: str, each: ControlInput) -> None:
        given.append(each)
        note(run_id, fence)

    channel = driver.keys.control("w1")
    listening = asyncio.create_task(
        follow_control(
            driver.partition.url,
            channel,
            abort=note,
            lose=note,
            steer=steer,
        )
    )

    async def is_subscribed() -> bool:
        ((_, listeners),) = await cast("Any", driver.redis).pubsub_numsub(channel)
        return bool(listeners)

    try:
        await until(is_subscribed)
        receipt = await driver.steer("one\0two\n")
        await driver.abort(lease.run_id, "enough")
        await driver.partition.call("PUBLISH", channel, f"\0{lease.run_id}\0{lease.fence}\0why")
        await until(lambda: len(told) == 3)
    finally:
        listening.cancel()
        await asyncio.wait([listening])
    assert given == [steering(str(receipt.input_id), "one\0two\n")]
    assert told == [
        (lease.run_id, lease.fence),
        (lease.run_id, "enough"),
        (lease.run_id, lease.fence, "why"),
    ]


async def test_what_was_heard_before_a_failover_is_not_heard_again(driver: Driver) -> None:
    lease = await driver.held()
    trail = await trail_of(driver, lease)
    await write(driver, lease, trail, [started(lease)])
    receipt = await driver.steer()
    assert receipt.input_id is not None
    snapshot = await take_snapshot(driver.redis)
    await write(driver, lease, trail, [*heard(lease, receipt.input_id), said(lease)])
    await fail_over(driver.redis, snapshot)
    loss = await loss_of(driver, trail)
    written = await lost_suffix(driver.partition, lease, loss)
    assert written is not None
    appended = await append(
        driver.partition, lease, written, head=loss.base_id, progress=True, retry_s=RETRY_S
    )
    assert appended.inputs == ()
    driver.heads["s", "main"] = appended.head
    await driver.finish(lease)
    await driver.check(quiescent=True)
