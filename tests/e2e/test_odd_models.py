"""A model in the worker's own process that raises, or says, what none should."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Final
from uuid import uuid4

import pytest
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_rest, hearing
from tests.e2e.waiting import DEADLINE_S

from runlane.journal.server import Server
from runlane.journal.wire.records import MessageAppended
from runlane.producer import AgentRunResult, Client, EventKind, RunStatus, StopReason

APP: Final = "tests.e2e.odd_models_app:app"


@pytest.fixture(scope="module")
def fleet(
    server: Server, model: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fleet]:
    """One worker that has to live through all tests but the last."""
    directory = tmp_path_factory.mktemp("odd")
    with Fleet(server.url, f"odd-{uuid4().hex[:8]}", directory, model) as opened:
        asyncio.run(opened.start(app=APP))
        yield opened


@pytest.fixture(autouse=True)
async def at_rest(fleet: Fleet) -> AsyncGenerator[None, None]:
    yield
    await check_rest(fleet)


async def _end(fleet: Fleet, client: Client, task: str) -> tuple[AgentRunResult, Story]:
    """Return how a run ends, at its first attempt and with the worker alive, and its records."""
    session = client.session(f"s-{uuid4().hex[:8]}", agent="odd")
    async with hearing(fleet, session) as heard:
        handle = await session.run(task)
        result = await handle.result(DEADLINE_S)
        await heard.until_ended(handle.run_id)
    info = await handle.status()
    assert (info.attempt, info.crashes) == (1, 0)
    assert fleet.workers[0].alive
    story = await Story.read(client, session.session_id)
    assert story.end(handle.run_id).result == result
    assert heard.committed == story.events
    return result, story


@pytest.mark.parametrize(
    ("task", "error"),
    [
        ("cancel", "RuntimeError: the model cancelled itself"),
        ("cancel its task", "RuntimeError: the model cancelled itself"),
        ("leave", "RuntimeError: the model raised SystemExit: 7"),
        ("signal", "RuntimeError: the model raised OddSignal: odd"),
        ("surrogate", "ValueError: a\ufffdb"),
        ("mute", "MuteError"),
        ("shout", "ValueError: xxx"),
    ],
)
async def test_whatever_a_model_raises_fails_its_run_and_the_worker_lives_on(
    fleet: Fleet, client: Client, task: str, error: str
) -> None:
    result, _ = await _end(fleet, client, task)
    assert (result.status, result.stop_reason) == (RunStatus.FAILED, StopReason.RUNTIME_ERROR)
    assert result.error is not None
    assert result.error.startswith(error)
    assert len(result.error) < 5000


async def test_what_a_model_says_is_cleaned_before_it_is_kept_and_heard(
    fleet: Fleet, client: Client
) -> None:
    result, _ = await _end(fleet, client, "say")
    assert (result.status, result.output) == (RunStatus.COMPLETED, "well\ufffd")


async def test_what_a_model_calls_is_cleaned_before_it_is_kept_and_answered(
    fleet: Fleet, client: Client
) -> None:
    result, story = await _end(fleet, client, "call")
    assert result.status is RunStatus.COMPLETED
    (call,) = story.all(MessageAppended)[0].message.tool_calls
    assert (call.id, call.name, call.arguments) == ("\ufffd", "\ufffd", '{"a": "\ufffd"}')


async def test_a_model_that_answers_the_stop_of_its_worker_by_an_error_does_not_fail_the_run(
    fleet: Fleet, client: Client
) -> None:
    (worker,) = fleet.workers
    session = client.session("stopped", agent="odd")
    async with hearing(fleet, session) as heard:
        handle = await session.run("resent")
        await heard.until(EventKind.ASSISTANT_TEXT_DELTA)
        worker.terminate()
        await worker.until_logged("worker_drains")
        worker.terminate()
        assert await worker.ended() == 0
        fleet.open("go")
        await fleet.start(app=APP)
        result = await handle.result(DEADLINE_S)
    assert (result.status, result.output) == (RunStatus.COMPLETED, "well\ufffd")
    info = await handle.status()
    assert (info.attempt, info.crashes) == (2, 0)
