"""What surrounds the loop, in real workers: it holds over kills as if nothing had happened."""

import pytest
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_calls, check_rest
from tests.e2e.waiting import DEADLINE_S, until

from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import ToolCompleted, ToolOutcome
from runlane.producer import Client, RunHandle, StopReason

APP = "tests.e2e.loop_app:app"


async def kill_and_replace(fleet: Fleet, handle: RunHandle) -> None:
    """End the only worker in the middle of a run, and start another one."""
    fleet.workers[-1].kill()
    await fleet.start(app=APP)

    async def taken_over() -> bool:
        return (await handle.status()).attempt > 1

    await until(taken_over, "another worker has the run")


async def test_results_of_a_batch_survive_the_death_of_its_worker(
    fleet: Fleet, client: Client
) -> None:
    """Those before the first that is missing; the others only look, and look again."""
    await fleet.start(app=APP)
    session = client.session("s", agent="reader")
    gates = ("one", "two", "three", "four")
    batch = " ; ".join(f'hold {{"gate": "{gate}"}}' for gate in gates)
    handle = await session.run(f"[[tools {batch}]] [[say read]]")
    await until(lambda: len(fleet.ledger.all("hold")) == 3, "as many read as may")
    fleet.open("one")
    await until(lambda: len(fleet.ledger.all("hold")) == 4, "the next one is let in")

    async def kept() -> bool:
        return len((await Story.read(client, "s")).all(ToolCompleted)) == 1

    await until(kept, "the first result is journaled")
    await kill_and_replace(fleet, handle)
    for gate in gates:
        fleet.open(gate)
    result = await handle.result(DEADLINE_S)
    assert result.output == "read"
    done = (await Story.read(client, "s")).all(ToolCompleted)
    assert [body.index for body in done] == [0, 1, 2, 3]
    assert [body.attempt for body in done] == [1, 2, 2, 2]
    assert len(fleet.ledger.all("hold", key=f"{handle.run_id}:1:0")) == 1
    await check_rest(fleet)


async def test_a_limit_of_a_policy_counts_the_calls_of_the_attempt_that_died(
    fleet: Fleet, client: Client
) -> None:
    await fleet.start(app=APP)
    session = client.session("s", agent="guarded")
    handle = await session.run(
        '[[tool pay]] [[tool hold {"gate": "g"}]] [[tool pay {"amount": 2}]] '
        '[[tool pay {"amount": 3}]] [[say paid]]'
    )
    await until(lambda: len(fleet.ledger.all("hold")) == 1, "the first payment is made")
    await kill_and_replace(fleet, handle)
    fleet.open("g")
    result = await handle.result(DEADLINE_S)
    assert result.stop_reason is StopReason.TOOL_REJECTED
    assert len(fleet.ledger.all("pay")) == 2
    rejected = (await Story.read(client, "s")).all(ToolCompleted)[-1]
    assert "two-payments" in rejected.message.content
    assert rejected.message.is_error
    await check_rest(fleet)


async def test_what_does_not_fit_a_schema_is_told_without_its_values(
    fleet: Fleet, client: Client
) -> None:
    await fleet.start(app=APP)
    session = client.session("s", agent="guarded")
    handle = await session.run('[[tool pay {"amount": "s3cret"}]] [[say so]]')
    assert (await handle.result(DEADLINE_S)).output == "so"
    (told,) = (await Story.read(client, "s")).all(ToolCompleted)
    assert told.outcome is ToolOutcome.ERROR
    assert "invalid_tool_arguments" in told.message.content
    assert "s3cret" not in told.message.content
    assert fleet.ledger.all("pay") == []


async def test_a_run_that_a_hook_stopped_can_be_continued(fleet: Fleet, client: Client) -> None:
    await fleet.start(app=APP)
    session = client.session("s", agent="paused")
    task = "[[tool look]] [[tool stamp]] [[tool pay]] [[say done]]"
    result = await (await session.run(task)).result(DEADLINE_S)
    assert (result.stop_reason, result.output, result.turns) == (
        StopReason.BEHAVIOR_STOP,
        "paused",
        2,
    )
    assert fleet.ledger.all("pay") == []
    continued = await (await session.continue_run()).result(DEADLINE_S)
    assert continued.output == "done"
    assert len(fleet.ledger.all("pay")) == 1


@pytest.mark.parametrize("kill", [False, True])
async def test_only_a_tool_finishes_a_run_that_must_finish_explicitly(
    fleet: Fleet, client: Client, kill: bool
) -> None:
    await fleet.start(app=APP)
    session = client.session("s", agent="finisher")
    handle = await session.run(
        '[[tool hold {"gate": "g"}]] [[tool finish {"summary": "all done"}]]'
    )
    await until(lambda: len(fleet.ledger.all("hold")) >= 1, "it is at work")
    if kill:
        await kill_and_replace(fleet, handle)
    fleet.open("g")
    result = await handle.result(DEADLINE_S)
    assert (result.stop_reason, result.output) == (StopReason.TOOL_COMPLETION, "all done")
    talked = await (await session.run("[[say all done]]")).result(DEADLINE_S)
    assert talked.stop_reason is StopReason.MAX_NO_TOOL_RESPONSES
    assert talked.turns == 3
    await check_rest(fleet)


async def test_a_budget_of_calls_counts_those_of_the_attempt_that_died(
    fleet: Fleet, client: Client
) -> None:
    await fleet.start(app=APP)
    session = client.session("s", agent="spender")
    handle = await session.run('[[tool look]] [[tool hold {"gate": "g"}]] [[tools pay ; stamp]]')
    await until(lambda: len(fleet.ledger.all("hold")) == 1, "it is at work")
    await kill_and_replace(fleet, handle)
    fleet.open("g")
    result = await handle.result(DEADLINE_S)
    assert result.stop_reason is StopReason.BUDGET_EXCEEDED
    assert (len(fleet.ledger.all("pay")), len(fleet.ledger.all("stamp"))) == (1, 0)
    messages = [each for each in await session.messages() if isinstance(each, ToolMessage)]
    assert [each.is_error for each in messages] == [False, False, False, True]
    check_calls(fleet, [await Story.read(client, "s")])
    await check_rest(fleet)


async def test_the_same_call_again_and_again_ends_a_run(fleet: Fleet, client: Client) -> None:
    await fleet.start(app=APP)
    session = client.session("s", agent="guard")
    handle = await session.run("[[tool pay]] [[tool pay]] [[tool pay]] [[say paid]]")
    result = await handle.result(DEADLINE_S)
    assert result.stop_reason is StopReason.REPEATED_TOOL_CALL
    assert len(fleet.ledger.all("pay")) == 2
    await check_rest(fleet)
