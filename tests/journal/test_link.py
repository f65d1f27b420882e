"""The shared connection: each caller gets its own reply, or an error, and never waits forever."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from runlane.journal import link as link_module
from runlane.journal.errors import (
    InvalidInputError,
    ServerUnavailableError,
    ServerUnsuitableError,
)
from runlane.journal.link import Link
from runlane.journal.server import Server

NEVER_S = 60


@pytest.fixture
async def link_to() -> AsyncIterator[Callable[[str], Link]]:
    """Links that are closed at the end."""
    opened: list[Link] = []

    def open_link(url: str) -> Link:
        opened.append(Link(url))
        return opened[-1]

    yield open_link
    for link in opened:
        await link.close()


@pytest.fixture
def link(redis_url: str, link_to: Callable[[str], Link]) -> Link:
    return link_to(redis_url)


async def test_a_thousand_calls_at_once_get_their_own_replies(link: Link) -> None:
    replies = await asyncio.gather(*(link.call("ECHO", number) for number in range(1000)))
    assert replies == [b"%d" % number for number in range(1000)]


async def test_replies_of_any_type_come_as_they_are(link: Link) -> None:
    assert await link.call("GET", "no such key") is None
    assert await link.call("EVAL", "return {1, 'x', {2, {}}}", 0) == [1, b"x", [2, []]]
    big = os.urandom(3_000_000)
    assert await link.call("ECHO", big) == big


async def test_a_caller_that_gives_up_does_not_shift_the_replies_of_others(link: Link) -> None:
    await link.call("PING")
    slow = asyncio.create_task(link.call("BLPOP", "nothing", 0.2))
    others = [asyncio.create_task(link.call("ECHO", number)) for number in range(100)]
    await asyncio.sleep(0)
    for task in others[::3]:
        task.cancel()
    replies = await asyncio.gather(*others, return_exceptions=True)
    for number, reply in enumerate(replies):
        assert (
            isinstance(reply, asyncio.CancelledError)
            if number % 3 == 0
            else reply == b"%d" % number
        )
    assert await slow is None
    assert await link.call("ECHO", "x") == b"x"


async def test_a_refused_command_is_its_callers_error_alone(link: Link) -> None:
    calls = [link.call("ECHO", "a"), link.call("NONSENSE"), link.call("ECHO", "b")]
    first, refused, last = await asyncio.gather(*calls, return_exceptions=True)
    assert (first, last) == (b"a", b"b")
    assert isinstance(refused, ResponseError)


async def test_a_text_that_cannot_be_encoded_is_its_callers_error_alone(link: Link) -> None:
    calls = [link.call("ECHO", "a"), link.call("ECHO", "\ud800"), link.call("ECHO", "b")]
    first, refused, last = await asyncio.gather(*calls, return_exceptions=True)
    assert (first, last) == (b"a", b"b")
    assert isinstance(refused, InvalidInputError)
    assert await link.call("ECHO", "c") == b"c"


async def test_a_killed_connection_fails_what_was_sent_and_is_replaced(
    link: Link, redis: Redis
) -> None:
    own_id = await link.call("CLIENT", "ID")
    waiting = [asyncio.create_task(link.call("BLPOP", "nothing", NEVER_S)) for _ in range(3)]
    await until_blocked(redis)
    assert await redis.execute_command("CLIENT", "KILL", "ID", own_id)  # type: ignore[no-untyped-call]
    for error in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(error, ServerUnavailableError)
        assert error.sent
    assert await link.call("CLIENT", "ID") != own_id


async def until_blocked(redis: Redis) -> None:
    async with asyncio.timeout(30):
        while True:
            if (await redis.info("clients"))["blocked_clients"]:
                return
            await asyncio.sleep(0.01)


async def test_a_reply_that_does_not_come_is_an_error_and_shifts_nothing(
    link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "REPLY_TIMEOUT_S", 0.2)
    with pytest.raises(ServerUnavailableError, match="TimeoutError") as refused:
        await link.call("BLPOP", "nothing", NEVER_S)
    assert refused.value.sent
    monkeypatch.setattr(link_module, "REPLY_TIMEOUT_S", 30)
    assert await link.call("ECHO", "x") == b"x"


async def test_a_server_that_stands_still_is_an_error_for_each_call_until_it_goes_on(
    own_server: Server,
    link_to: Callable[[str], Link],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_module, "CONNECT_TIMEOUT_S", 1)
    link = link_to(own_server.url)
    await until_answering(link)
    monkeypatch.setattr(link_module, "REPLY_TIMEOUT_S", 0.2)
    os.kill(own_server.pid, signal.SIGSTOP)
    try:
        for _ in range(2):
            async with asyncio.timeout(30):
                with pytest.raises(ServerUnavailableError):
                    await link.call("ECHO", b"x" * 20_000_000)
    finally:
        os.kill(own_server.pid, signal.SIGCONT)
    monkeypatch.setattr(link_module, "REPLY_TIMEOUT_S", 30)
    await until_answering(link)


async def until_answering(link: Link) -> None:
    async with asyncio.timeout(30):
        while True:
            with suppress(ServerUnavailableError):
                assert await link.call("ECHO", "x") == b"x"
                return


async def test_closing_fails_the_calls_in_flight(redis_url: str, redis: Redis) -> None:
    link = Link(redis_url)
    waiting = asyncio.create_task(link.call("BLPOP", "nothing", NEVER_S))
    await until_blocked(redis)
    await link.close()
    with pytest.raises(ServerUnavailableError):
        await waiting


@pytest.mark.parametrize("credentials", [":wr0ng@", "somebody:wr0ng@", ""])
async def test_refused_credentials_are_named_without_the_password(
    own_server: Server, link_to: Callable[[str], Link], credentials: str
) -> None:
    await link_to(own_server.url).call("CONFIG", "SET", "requirepass", "s3cret")
    link = link_to(own_server.url.replace("//", f"//{credentials}"))
    with pytest.raises(ServerUnsuitableError, match="RUNLANE_REDIS_URL") as refused:
        await link.call("PING")
    for secret in ("wr0ng", "s3cret"):
        assert secret not in str(refused.value)
    assert await link_to(own_server.url.replace("//", "//:s3cret@")).call("PING") == b"PONG"


@pytest.mark.parametrize(
    "url", ["", "nonsense", "http://host", "redis://:s3c/ret@host:6379", "redis://:x@host:s3c"]
)
def test_a_url_that_is_none_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInputError, match="RUNLANE_REDIS_URL") as refused:
        Link(url)
    assert "s3c" not in str(refused.value)
    assert refused.value.__cause__ is None
