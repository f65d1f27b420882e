"""The scripted model server: its HTTP, its scripts, its process."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from openai import APIConnectionError, AsyncOpenAI
from tests.models.support import adapter_at, eventually, response_of, user

from runlane.journal.wire.messages import AssistantMessage, Message, ToolMessage, UserMessage
from runlane.worker.models import ModelContext
from runlane.worker.testing.directives import directives
from runlane.worker.testing.model_server import ModelServer
from runlane.worker.testing.script import ChatRequest, HttpFault, Reply, StreamFault, ToolCall
from runlane.worker.testing.scripts import SCRIPTS, echo, instant

COMMAND = [sys.executable, "-m", "runlane.worker.testing.model_server"]
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()


def asked(*messages: dict[str, Any]) -> ChatRequest:
    return ChatRequest("m", list(messages), [], {})


def reply_to(text: str) -> Reply:
    return directives(asked({"role": "user", "content": text}))


def post(body: bytes = BODY, *, extra: str = "", version: str = "1.1") -> bytes:
    head = f"POST /v1/chat/completions HTTP/{version}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
    return head.encode() + body


async def exchange(server: ModelServer, *requests: bytes, pieces: int = 1) -> bytes:
    """Send bytes, and return all that comes until the server closes."""
    host, port = server.url.split("/")[2].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    data = b"".join(requests)
    size = -(-len(data) // pieces)
    try:
        for start in range(0, len(data), size):
            writer.write(data[start : start + size])
            await writer.drain()
            await asyncio.sleep(0)
        return await reader.read()
    finally:
        writer.close()


LAST = "Connection: close\r\n"


@pytest.mark.parametrize("pieces", [1, 7, 1000])
async def test_requests_on_one_connection_are_answered_in_order(pieces: int) -> None:
    def count(_: ChatRequest) -> Reply:
        return Reply(text=f"answer {len(server.requests)}")

    async with ModelServer(count) as server:
        answer = await exchange(server, post(), post(), post(extra=LAST), pieces=pieces)
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.index(b"answer 1") < answer.index(b"answer 2") < answer.index(b"answer 3")


async def test_slow_replies_keep_the_order() -> None:
    delays = iter([0.05, 0.0])
    async with ModelServer(lambda _: Reply(text="x", delay_s=next(delays))) as server:
        answer = await exchange(server, post(), post(extra=LAST))
    assert answer.count(b"HTTP/1.1 200 OK") == 2


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n", 404),
        (post(b"{", extra=LAST), 400),
        (post(b"{}", extra=LAST), 400),
        (b"nonsense\r\n\r\n", 400),
        (b"x" * 70_000, 431),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (post(version="1.0"), 200),
    ],
)
async def test_what_is_no_request_is_refused(request_bytes: bytes, status: int) -> None:
    async with ModelServer(echo) as server:
        answer = await exchange(server, request_bytes)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())


async def test_a_directive_that_makes_no_sense_is_refused() -> None:
    body = BODY.replace(b"hi", b"[[tol x]]")
    async with ModelServer(directives) as server:
        answer = await exchange(server, post(body, extra=LAST))
    assert b" 400 " in answer
    assert b"unknown directive [[tol ...]]" in answer


async def test_the_official_sdk_reads_a_reply_that_is_not_streamed() -> None:
    call = ToolCall("c1", "add", '{"a": 1}')
    async with (
        ModelServer(lambda _: Reply(text="Look:", tool_calls=(call,), thinking="Hm.")) as server,
        AsyncOpenAI(api_key="k", base_url=server.url, max_retries=0) as sdk,
    ):
        completion = await sdk.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}]
        )
    message = completion.choices[0].message
    assert (message.content, completion.choices[0].finish_reason) == ("Look:", "tool_calls")
    assert message.tool_calls is not None
    assert message.tool_calls[0].to_dict() == {
        "id": "c1",
        "type": "function",
        "function": {"name": "add", "arguments": '{"a": 1}'},
    }
    assert completion.usage is not None
    assert completion.usage.total_tokens > 0


@pytest.mark.parametrize(
    ("fault", "error"),
    [("reset", APIConnectionError), ("truncate", json.JSONDecodeError), ("error", TypeError)],
)
async def test_faults_of_a_reply_that_is_not_streamed(
    fault: StreamFault, error: type[Exception]
) -> None:
    async def answer(sdk: AsyncOpenAI) -> str | None:
        completion = await sdk.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}]
        )
        return completion.choices[0].message.content

    async with (
        ModelServer(lambda _: Reply(text="x", fault=fault)) as server,
        AsyncOpenAI(api_key="k", base_url=server.url, max_retries=0) as sdk,
    ):
        with pytest.raises(error):
            await answer(sdk)


def reporting_nothing(_: ChatRequest) -> Reply:
    return Reply(text="x", usage=None)


async def test_usage_is_sent_only_if_asked_for_and_known() -> None:
    async with ModelServer(echo) as server:
        async with adapter_at(server.url) as adapter:
            usage = (await response_of(adapter, user("x" * 4000))).usage
            assert usage is not None
            assert usage.input_tokens > 1000
        async with adapter_at(server.url, include_usage=False) as adapter:
            assert (await response_of(adapter)).usage is None
        server.script = reporting_nothing
        async with adapter_at(server.url) as adapter:
            assert (await response_of(adapter)).usage is None


async def test_requests_are_kept_up_to_a_bound() -> None:
    async with (
        ModelServer(echo, requests_max=2) as server,
        adapter_at(server.url) as adapter,
    ):
        for text in ("a", "b", "c"):
            await response_of(adapter, user(text))
        assert [request.messages[-1]["content"] for request in server.requests] == ["b", "c"]
        assert {request.model for request in server.requests} == {"m"}


async def test_leaving_ends_what_is_under_way() -> None:
    async with ModelServer(lambda _: Reply(fault="hang")) as server:
        waiting = asyncio.ensure_future(exchange(server, post()))
        await eventually(lambda: len(server.requests) == 1)
    assert await waiting == b""
    assert not server.connections


async def test_a_port_in_use_is_named() -> None:
    async with ModelServer(echo) as server:
        port = int(server.url.split(":")[2].split("/")[0])
        with pytest.raises(OSError, match=f"port {port} of 127.0.0.1 is in use"):
            async with ModelServer(echo, port=port):
                pass
        ended = await asyncio.to_thread(
            subprocess.run, [*COMMAND, "--port", str(port)], capture_output=True, check=False
        )
        assert ended.returncode == 1
        assert ended.stderr == f"model_server: port {port} of 127.0.0.1 is in use\n".encode()


@asynccontextmanager
async def process(*command: str) -> AsyncGenerator[tuple[asyncio.subprocess.Process, str], None]:
    started = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert started.stdout is not None
    try:
        yield started, (await started.stdout.readline()).decode().strip()
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_process_serves_until_it_is_told_to_stop(number: signal.Signals) -> None:
    async with process(*COMMAND, "--script", "echo") as (server, url), adapter_at(url) as adapter:
        assert (await response_of(adapter)).message == AssistantMessage("echo: hi")
        server.send_signal(number)
        assert await asyncio.wait_for(server.wait(), 10) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child")
async def test_a_process_dies_with_its_parent() -> None:
    parent = f"import subprocess; subprocess.run({COMMAND!r})"
    async with process(sys.executable, "-c", parent) as (started, url):
        host, port = url.split("/")[2].split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        started.kill()
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()


def test_the_scripts_have_names() -> None:
    assert dict(SCRIPTS) == {"directives": directives, "echo": echo, "instant": instant}


def test_echo_repeats_what_the_user_said_last() -> None:
    parts = [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]
    earlier = {"role": "user", "content": "x"}
    assert echo(asked(earlier, {"role": "user", "content": parts})).text == "echo: a b"
    assert echo(asked()).text == "echo: "


def test_instant_says_ok() -> None:
    assert instant(asked()).text == "ok"


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Hello", Reply(text="echo: Hello")),
        ("Hello [[say Hi there.]]", Reply(text="Hi there.")),
        ("[[tool ping]]", Reply(tool_calls=(ToolCall("call_0_0", "ping", "{}"),))),
        (
            'Please [[tool add {"a": [[1]], "b": "]]"}]] now',
            Reply(tool_calls=(ToolCall("call_0_0", "add", '{"a":[[1]],"b":"]]"}'),)),
        ),
        (
            '[[tools add {"a": 1} ; ping; look {}]]',
            Reply(
                tool_calls=(
                    ToolCall("call_0_0", "add", '{"a":1}'),
                    ToolCall("call_0_1", "ping", "{}"),
                    ToolCall("call_0_2", "look", "{}"),
                )
            ),
        ),
        ("[[delay 0.5]][[say x]]", Reply(text="x", delay_s=0.5)),
        (
            "[[pace 0.1]] [[think Hm.]] [[tool ping]]",
            Reply(
                chunk_delay_s=0.1, thinking="Hm.", tool_calls=(ToolCall("call_0_0", "ping", "{}"),)
            ),
        ),
        ("[[fault hang]]", Reply(text="partial answer", fault="hang")),
        (
            "[[fault 429 2]]",
            Reply(text="partial answer", fault=HttpFault(429, headers={"retry-after": "2"})),
        ),
        (
            "[[fault 400 too_long]]",
            Reply(
                text="partial answer",
                fault=HttpFault(
                    400,
                    {
                        "error": {
                            "message": "scripted fault",
                            "type": "scripted",
                            "code": "too_long",
                        }
                    },
                ),
            ),
        ),
    ],
)
def test_a_directive_is_carried_out(text: str, reply: Reply) -> None:
    assert reply_to(text) == reply


@pytest.mark.parametrize(
    "text",
    [
        "[[tol x]]",
        "[[tool]]",
        "[[tool add {]]",
        "[[tool add (1)]]",
        "[[say x",
        "[[delay soon]]",
        "[[fault]]",
        "[[fault 200]]",
        "[[fault maybe]]",
    ],
)
def test_a_malformed_directive_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        reply_to(text)


async def test_directives_lead_through_a_whole_run() -> None:
    task = '[[tool look {"n": 1}]] then [[delay 0.01]] [[tools add {"a": 2} ; ping]] [[say Done.]]'
    transcript: list[Message] = [UserMessage(task)]
    turns: list[list[str]] = []
    async with ModelServer(directives) as server, adapter_at(server.url) as adapter:
        for _ in range(4):
            message = (await response_of(adapter, ModelContext(tuple(transcript)))).message
            transcript += [message]
            transcript += [ToolMessage(c.id, c.name, f"{c.name} ok") for c in message.tool_calls]
            turns.append([call.id for call in message.tool_calls])
    assert turns == [["call_0_0"], ["call_1_0", "call_1_1"], [], []]
    said = [m.content for m in transcript if isinstance(m, AssistantMessage)]
    assert said == [None, None, "Done.", "continued: Done."]


def test_tool_results_are_summed_up() -> None:
    calls = [{"id": "a", "type": "function", "function": {"name": "ping", "arguments": "{}"}}]
    spoken: list[dict[str, Any]] = [
        {"role": "user", "content": "[[tool ping]]"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "pong"},
    ]
    assert directives(asked(*spoken)).text == "results: pong"
    assert directives(asked(*spoken, {"role": "system", "content": "x"})).text == "results: pong"
    again = directives(asked(*spoken, {"role": "user", "content": "[[tool ping]]"}))
    assert [call.id for call in again.tool_calls] == ["call_1_0"]
