"""Asking and waiting in one call."""

import asyncio

import pytest
from tests.producer.hand_worker import HandWorker
from tests.producer.support import DEADLINE_S, until

from runlane.producer import (
    AgentRunError,
    InvalidInputError,
    ResultTimeoutError,
    Session,
    Settings,
    StopReason,
    SyncClient,
    UnknownSessionError,
)


async def accepted(session: Session) -> None:
    """Wait until the session has an active run."""

    async def is_active() -> bool:
        try:
            return (await session.status()).active_run is not None
        except UnknownSessionError:
            return False

    await until(is_active)


async def test_the_answer_is_returned(session: Session, worker: HandWorker) -> None:
    asked = asyncio.create_task(session.runtime("one", timeout=DEADLINE_S))
    await accepted(session)
    await worker.complete("yes")
    assert await asked == "yes"


async def test_the_same_key_gives_the_same_answer(session: Session, worker: HandWorker) -> None:
    handle = await session.run("one", idempotency_key="k", version="1")
    await (await worker.begin(["support@1"])).finish("yes")
    assert await session.runtime(task="one", idempotency_key="k", version="1") == "yes"
    assert (await session.status()).last_run == handle.run_id


async def test_a_run_that_does_not_complete_is_an_error_that_says_how_it_ended(
    session: Session, worker: HandWorker
) -> None:
    asked = asyncio.create_task(session.runtime("one", timeout=DEADLINE_S))
    await accepted(session)
    await (await worker.begin()).finish("too often", stop_reason=StopReason.RATE_LIMITED)
    with pytest.raises(AgentRunError, match="too often") as caught:
        await asked
    assert caught.value.result.stop_reason is StopReason.RATE_LIMITED


async def test_the_callers_deadline_does_not_touch_the_run(
    session: Session, worker: HandWorker
) -> None:
    with pytest.raises(ResultTimeoutError, match="it goes on"):
        await session.runtime("one", timeout=0.05)
    await worker.complete("yes")
    assert (await session.status()).last_stop_reason is StopReason.TEXT_RESPONSE


async def test_nothing_is_asked_for_with_a_bad_timeout(session: Session) -> None:
    with pytest.raises(InvalidInputError, match="timeout"):
        await session.runtime("one", timeout=-1)
    with pytest.raises(UnknownSessionError):
        await session.status()


async def test_the_blocking_client_returns_the_answer_too(
    session: Session, settings: Settings, worker: HandWorker
) -> None:
    def ask() -> str | None:
        with SyncClient.connect(settings=settings) as client:
            there = client.session(session.session_id, agent="support")
            return there.runtime("one", idempotency_key="k", timeout=DEADLINE_S)

    asked = asyncio.create_task(asyncio.to_thread(ask))
    await accepted(session)
    await worker.complete("yes")
    assert await asked == "yes"
