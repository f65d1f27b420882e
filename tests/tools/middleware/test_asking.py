import asyncio
import contextlib

import pytest

from runlane.worker.control.cancellation import AgentCancelledError, CancellationToken
from runlane.worker.tools.middleware.asking import answer_of


async def test_an_answer_is_returned() -> None:
    async def answer() -> str:
        return "yes"

    assert await answer_of(answer, CancellationToken()) == "yes"


async def test_an_answer_that_comes_too_late_is_an_error() -> None:
    async def think() -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError, match=r"no result within 0\.01 s"):
        await answer_of(think, CancellationToken(), 0.01)


async def test_the_end_of_the_run_ends_the_question() -> None:
    async def think() -> None:
        asked.set()
        await asyncio.Event().wait()

    token, asked = CancellationToken(), asyncio.Event()
    asking = asyncio.create_task(answer_of(think, token))
    await asked.wait()
    token.cancel("user left")
    with pytest.raises(AgentCancelledError, match="user left"):
        await asking


async def test_who_is_asked_cannot_hold_a_run_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def think() -> None:
        asked.set()
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    monkeypatch.setattr("runlane.worker.tools.middleware.asking.ANSWER_GRACE_S", 0.01)
    token, asked, release = CancellationToken(), asyncio.Event(), asyncio.Event()
    asking = asyncio.create_task(answer_of(think, token))
    await asked.wait()
    token.cancel("user left")
    with pytest.raises(AgentCancelledError):
        await asking
    release.set()
