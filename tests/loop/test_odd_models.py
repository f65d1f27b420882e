"""A model that raises, or says, what none should."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.loop.agents import World, agent_of
from tests.loop.memory_run import Journal, MemoryRun
from tests.loop.scripted_model import calls, provider_error, raw_call, text

from runlane.journal.wire.events import EventKind
from runlane.journal.wire.messages import AssistantMessage, ModelToolCall
from runlane.journal.wire.records import MessageAppended, ToolCompleted
from runlane.journal.wire.results import StopReason
from runlane.worker import (
    Agent,
    AgentCancelledError,
    CancellationToken,
    ModelAdapter,
    ModelContext,
    ModelProviderError,
    ModelResponseCompleted,
    ModelTextDelta,
    ModelThinkingDelta,
    ToolCallContext,
    tool,
)
from runlane.worker.models import ModelStreamEvent


class OddSignal(BaseException):
    """No `Exception`."""


class Misbehaving(ModelAdapter):
    """Does something in the middle of its answer."""

    def __init__(self, misbehave: Callable[[], Awaitable[object]]) -> None:
        self._misbehave = misbehave

    async def stream(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AsyncIterator[ModelStreamEvent]:
        yield ModelTextDelta("half an ans")
        await self._misbehave()


class Saying(ModelAdapter):
    """Says what it is given."""

    def __init__(self, *events: ModelStreamEvent) -> None:
        self._events = events

    async def stream(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AsyncIterator[ModelStreamEvent]:
        for event in self._events:
            yield event


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def run(journal: Journal) -> MemoryRun:
    return MemoryRun(journal)


def raising(error: BaseException) -> Agent:
    async def misbehave() -> None:
        raise error

    return Agent("agent", Misbehaving(misbehave))


async def _cancel_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.Event().wait()


async def test_a_model_that_cancels_its_own_task_is_an_error_of_the_run(run: MemoryRun) -> None:
    ending = await run.carry_on(Agent("agent", Misbehaving(_cancel_itself)))
    assert ending.stop_reason is StopReason.RUNTIME_ERROR
    assert "the model cancelled itself" in (ending.error or "")


@pytest.mark.parametrize("error", [asyncio.CancelledError(), AgentCancelledError("made up")])
async def test_a_model_that_claims_to_be_cancelled_is_an_error_of_the_run(
    run: MemoryRun, error: BaseException
) -> None:
    ending = await run.carry_on(raising(error))
    assert ending.stop_reason is StopReason.RUNTIME_ERROR
    assert "the model cancelled itself" in (ending.error or "")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SystemExit(7), "the model raised SystemExit: 7"),
        (GeneratorExit(), "the model raised GeneratorExit"),
        (OddSignal("odd"), "the model raised OddSignal: odd"),
        (BaseExceptionGroup("many", [OddSignal()]), "the model raised BaseExceptionGroup: many"),
    ],
)
async def test_what_is_no_exception_is_an_error_of_the_run_and_ends_nothing_else(
    run: MemoryRun, error: BaseException, words: str
) -> None:
    ending = await run.carry_on(raising(error))
    assert ending.stop_reason is StopReason.RUNTIME_ERROR
    assert words in (ending.error or "")


@pytest.mark.parametrize("error", [None, AgentCancelledError("stop"), provider_error()])
async def test_the_end_of_the_worker_goes_through_the_model_and_on(
    run: MemoryRun, error: Exception | None
) -> None:
    begun = asyncio.Event()

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if error is None:
                raise
            raise error from None

    task = asyncio.create_task(run.carry_on(Agent("agent", Misbehaving(wait))))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_abort_is_an_abort_even_if_the_model_gives_a_reason_of_its_own(
    run: MemoryRun,
) -> None:
    async def stop() -> None:
        run.cancellation.cancel("aborted")
        raise AgentCancelledError("made up")

    ending = await run.carry_on(Agent("agent", Misbehaving(stop)))
    assert (ending.stop_reason, ending.error) == (StopReason.EXTERNAL_ABORT, "aborted")


async def test_the_words_of_a_provider_error_are_storable_and_bounded(run: MemoryRun) -> None:
    ending = await run.carry_on(raising(ModelProviderError("\ud800" + "x" * 1_000_000)))
    assert ending.stop_reason is StopReason.PROVIDER_ERROR
    assert ending.error is not None
    assert ending.error.startswith("\ufffdx")
    assert len(ending.error.encode()) < 5000


async def test_what_a_model_says_is_storable(run: MemoryRun, journal: Journal) -> None:
    said = ModelResponseCompleted(AssistantMessage("a\ud800 \ud83d\ude00"))
    deltas = ModelThinkingDelta("h\ud800m"), ModelTextDelta("a\ud800")
    ending = await run.carry_on(Agent("agent", Saying(*deltas, said)))
    assert ending.output == "a\ufffd 😀"
    assert run.said == ["a\ufffd"]
    assert (EventKind.ASSISTANT_THINKING_DELTA, 1, {"delta": "h\ufffdm"}) in run.events
    (body,) = [body for body in journal.bodies if isinstance(body, MessageAppended)]
    assert body.message == AssistantMessage("a\ufffd 😀")


async def test_what_a_model_calls_is_storable(run: MemoryRun, journal: Journal) -> None:
    odd = ModelToolCall(id="i\ud800", name="n\ud800", arguments='{"a": "\ud800"}')
    asked = ModelResponseCompleted(AssistantMessage(tool_calls=(odd,)))
    await run.carry_on(Agent("agent", Saying(asked)))
    bodies = [body for body in journal.bodies if isinstance(body, MessageAppended | ToolCompleted)]
    assert isinstance(bodies[0], MessageAppended)
    (call,) = bodies[0].message.tool_calls
    assert call == ModelToolCall(id="i\ufffd", name="n\ufffd", arguments='{"a": "\ufffd"}')
    assert isinstance(bodies[1], ToolCompleted)
    assert bodies[1].message.tool_call_id == "i\ufffd"


async def test_what_a_tool_reports_is_storable(run: MemoryRun, journal: Journal) -> None:
    @tool
    async def report(context: ToolCallContext) -> None:
        await context.progress.report("a\ud800", {"odd": ["\ud800", object]})

    answers = [calls(raw_call("report", "{}")), text("done")]
    await run.carry_on(agent_of(answers, World(journal), more=[report]))
    (update,) = [
        payload["update"] for kind, _, payload in run.events if kind is EventKind.TOOL_PROGRESSED
    ]
    assert update == {"message": "a\ufffd", "data": {"odd": ["\ufffd", str(object)]}}
