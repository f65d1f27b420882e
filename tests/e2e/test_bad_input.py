"""What is refused leaves nothing behind; what is only strange is carried out."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

import pytest
from redis.asyncio import Redis
from tests.e2e.harness import Fleet
from tests.e2e.observing import check_rest
from tests.e2e.waiting import DEADLINE_S

from runlane.producer import (
    Client,
    InvalidInputError,
    PayloadTooLargeError,
    RunHandle,
    UnknownAgentError,
)

Submit = Callable[[Client], Coroutine[Any, Any, RunHandle]]

REFUSALS: Final[dict[str, tuple[Submit, type[Exception], str]]] = {
    "unknown agent": (
        lambda client: client.session("s", agent="nobody").run("hi"),
        UnknownAgentError,
        "no worker has ever served an agent 'nobody'",
    ),
    "large task": (
        lambda client: client.session("s", agent="clerk").run("x" * (4 * 1024 * 1024 + 1)),
        PayloadTooLargeError,
        "over the limit",
    ),
    "lone surrogate": (
        lambda client: client.session("s", agent="clerk").run("a \ud800 b"),
        InvalidInputError,
        "surrogate",
    ),
    "empty task": (
        lambda client: client.session("s", agent="clerk").run(" "),
        InvalidInputError,
        "empty",
    ),
    "idempotency key": (
        lambda client: client.session("s", agent="clerk").run("hi", idempotency_key="k" * 300),
        InvalidInputError,
        "idempotency key",
    ),
    "run id": (
        lambda client: client.run_handle("not-a-uuid"),
        InvalidInputError,
        "not a UUID",
    ),
}


@pytest.fixture(scope="module")
def fleet(crew: Fleet) -> Fleet:
    return crew


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refused_request_leaves_nothing_behind(
    fleet: Fleet, client: Client, redis: Redis, name: str
) -> None:
    submit, error, words = REFUSALS[name]
    before = await _runs_and_sessions(redis, fleet)
    with pytest.raises(error, match=words):
        await submit(client)
    assert await _runs_and_sessions(redis, fleet) == before
    await check_rest(fleet)


@pytest.mark.parametrize("session_id", ["", "a b", "a/b", "ä", "x" * 129, "a\n", "{a}"])
async def test_an_id_outside_of_its_alphabet_is_refused(client: Client, session_id: str) -> None:
    with pytest.raises(InvalidInputError):
        client.session(session_id, agent="clerk")
    with pytest.raises(InvalidInputError):
        client.session("s", agent=session_id)
    with pytest.raises(InvalidInputError):
        client.session("s", agent="clerk", branch=session_id)


async def test_a_task_of_the_largest_size_is_carried_out(fleet: Fleet, client: Client) -> None:
    task = f"[[say done]]{'x' * (4 * 1024 * 1024 - 12)}"
    handle = await client.session("largest", agent="clerk").run(task)
    assert (await handle.result(DEADLINE_S)).output == "done"
    await check_rest(fleet)


async def test_words_that_a_model_or_tool_may_say_are_kept_as_they_are(
    fleet: Fleet, client: Client
) -> None:
    text = "NUL \0, bell \a, \U0001f600, \u202e and \ufffd"
    handle = await client.session("words", agent="clerk").run(f"[[tool look]] [[say {text}]]")
    assert (await handle.result(DEADLINE_S)).output == text
    await check_rest(fleet)


async def _runs_and_sessions(redis: Redis, fleet: Fleet) -> set[bytes]:
    scan = cast("Any", redis).scan_iter(match=f"{fleet.prefix}:*", count=1000)
    return {key async for key in scan if b":w:" not in key}
