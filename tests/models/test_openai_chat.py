"""The OpenAI adapter through the real SDK, against real servers."""

import asyncio
import email.utils
import json
import pickle
import subprocess
import sys
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import pytest
from tests.models.support import (
    KEY,
    Recording,
    ReplayServer,
    adapter_at,
    events_of,
    eventually,
    recorded,
    response_of,
    said,
    user,
)

from runlane.journal.wire.messages import (
    AssistantMessage,
    ModelToolCall,
    ModelUsage,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.results import StopReason
from runlane.worker.control import AgentCancelledError, CancellationToken
from runlane.worker.models import (
    ModelAdapter,
    ModelContext,
    ModelErrorKind,
    ModelProviderError,
    ModelResponseCompleted,
    ModelStreamEvent,
    ModelTextDelta,
    ModelThinkingDelta,
    ToolSchema,
)
from runlane.worker.testing.model_server import ModelServer
from runlane.worker.testing.script import HttpFault, Reply, Script, TokenUsage, ToolCall

ADD = ToolSchema(name="add", parameters={"type": "object"}, description="Adds.", strict=True)
PING = ToolSchema(name="ping", parameters={"type": "object"})
SLOW = Reply(text="one two three four five", chunk_delay_s=0.02)


def replying(reply: Reply) -> Script:
    return lambda _: reply


def fragment(**fields: Any) -> dict[str, Any]:
    return said(delta={"tool_calls": [fields]})


async def fault_of(*responses: Recording, **config: Any) -> ModelProviderError:
    async with ReplayServer(*responses) as server, adapter_at(server.url, **config) as adapter:
        with pytest.raises(ModelProviderError) as error:
            await events_of(adapter)
    return error.value


async def calls_of(*payloads: Any) -> list[tuple[str, str, str]]:
    answer = recorded(*payloads, said(finish_reason="tool_calls"))
    async with ReplayServer(answer) as server, adapter_at(server.url) as adapter:
        message = (await response_of(adapter)).message
    return [(call.id, call.name, call.arguments) for call in message.tool_calls]


async def test_a_response_comes_as_deltas_and_then_whole() -> None:
    reply = Reply(text="It is fine.", thinking="Let me see.", usage=TokenUsage(20, 9))
    async with ModelServer(replying(reply)) as server, adapter_at(server.url) as adapter:
        assert await events_of(adapter) == [
            ModelThinkingDelta("Let "),
            ModelThinkingDelta("me "),
            ModelThinkingDelta("see."),
            ModelTextDelta("It "),
            ModelTextDelta("is "),
            ModelTextDelta("fine."),
            ModelResponseCompleted(AssistantMessage("It is fine."), ModelUsage(20, 9)),
        ]
        assert adapter.name == "m"
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_tool_calls_come_whole() -> None:
    calls = (ToolCall("a", "add", '{"a": 1, "b": 2}'), ToolCall("b", "ping"))
    reply = Reply(text="Look:", tool_calls=calls)
    async with ModelServer(replying(reply)) as server, adapter_at(server.url) as adapter:
        message = (await response_of(adapter)).message
    assert message == AssistantMessage(
        "Look:", (ModelToolCall("a", "add", '{"a": 1, "b": 2}'), ModelToolCall("b", "ping", "{}"))
    )


async def test_complete_returns_the_same_message() -> None:
    async with ModelServer(replying(SLOW)) as server, adapter_at(server.url) as adapter:
        message = await adapter.complete(user("hi"), cancellation=CancellationToken())
    assert message == AssistantMessage(SLOW.text)


async def test_a_request_says_what_the_context_holds() -> None:
    call = ModelToolCall("c1", "ping")
    context = ModelContext(
        (
            SystemMessage("Be brief."),
            UserMessage("Hello"),
            AssistantMessage("Hm.", (call,)),
            ToolMessage("c1", "ping", "pong"),
            AssistantMessage(None, (call,)),
            ToolMessage("c1", "ping", "pong", is_error=True),
            AssistantMessage("Done."),
            UserMessage("Again"),
        ),
        (ADD, PING),
    )
    sent_call = {"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
    answer = recorded(said(finish_reason="stop"))
    async with ReplayServer(answer) as server, adapter_at(server.url) as adapter:
        await events_of(adapter, context)
        assert server.bodies[0] == {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Hm.", "tool_calls": [sent_call]},
                {"role": "tool", "tool_call_id": "c1", "content": "pong"},
                {"role": "assistant", "content": None, "tool_calls": [sent_call]},
                {"role": "tool", "tool_call_id": "c1", "content": "pong"},
                {"role": "assistant", "content": "Done."},
                {"role": "user", "content": "Again"},
            ],
            "temperature": 0.7,
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "add",
                        "description": "Adds.",
                        "parameters": {"type": "object"},
                        "strict": True,
                    },
                },
                {
                    "type": "function",
                    "function": {"name": "ping", "parameters": {"type": "object"}},
                },
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
        }


async def test_a_request_leaves_out_what_was_not_asked_for() -> None:
    answer = recorded(said(finish_reason="stop"))
    async with (
        ReplayServer(answer) as server,
        adapter_at(server.url, include_usage=False, temperature=0.0) as adapter,
    ):
        response = await response_of(adapter)
        assert set(server.bodies[0]) == {"model", "messages", "temperature", "stream"}
        assert server.bodies[0]["temperature"] == 0
    assert response == ModelResponseCompleted(AssistantMessage())


async def test_all_token_counts_are_kept() -> None:
    usage = {
        "prompt_tokens": 20,
        "completion_tokens": 9,
        "total_tokens": 29,
        "prompt_tokens_details": {"cached_tokens": 12, "cache_write_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }
    answer = recorded(said(finish_reason="stop"), {"choices": [], "usage": usage})
    async with ReplayServer(answer) as server, adapter_at(server.url) as adapter:
        assert (await response_of(adapter)).usage == ModelUsage(20, 9, 12, 3, 4)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
async def test_thinking_is_read_under_each_of_its_names(field: str) -> None:
    answer = recorded(
        said(delta={field: "Hm."}), said(delta={"content": "Yes."}, finish_reason="stop")
    )
    async with ReplayServer(answer) as server, adapter_at(server.url) as adapter:
        thinking, *_, last = await events_of(adapter)
    assert thinking == ModelThinkingDelta("Hm.")
    assert last == ModelResponseCompleted(AssistantMessage("Yes."))


async def test_a_refusal_is_what_the_model_says() -> None:
    answer = recorded(said(delta={"refusal": "I will not."}, finish_reason="stop"))
    async with ReplayServer(answer) as server, adapter_at(server.url) as adapter:
        assert (await response_of(adapter)).message == AssistantMessage("I will not.")


async def test_a_call_without_an_id_gets_the_same_one_every_time() -> None:
    first = fragment(index=0, function={"name": "add", "arguments": "{}"})
    second = fragment(index=1, function={"name": "add", "arguments": "{}"})
    expected = [("call_0", "add", "{}"), ("call_1", "add", "{}")]
    assert await calls_of(first, second) == expected


async def test_a_name_in_pieces_is_joined() -> None:
    assert await calls_of(
        fragment(index=0, id="a", function={"name": "get_", "arguments": ""}),
        fragment(index=0, function={"name": "weather"}),
        fragment(index=0, function={"arguments": '{"a":'}),
        fragment(index=0, function={"arguments": "1}"}),
    ) == [("a", "get_weather", '{"a":1}')]


async def test_two_calls_at_the_same_index_stay_two() -> None:
    assert await calls_of(
        fragment(index=0, id="a", function={"name": "add", "arguments": "{}"}),
        fragment(index=0, id="b", function={"name": "add", "arguments": '{"a":'}),
        fragment(index=0, function={"arguments": "1}"}),
    ) == [("a", "add", "{}"), ("b", "add", '{"a":1}')]


async def test_a_new_id_in_every_delta_makes_no_new_call() -> None:
    assert await calls_of(
        fragment(index=0, id="a", function={"name": "add", "arguments": '{"a":'}),
        fragment(index=0, id="b", function={"arguments": "1}"}),
    ) == [("a", "add", '{"a":1}')]


async def test_fragments_without_index_and_id_continue_the_latest_call() -> None:
    assert await calls_of(
        fragment(function={"name": "add", "arguments": '{"a":'}),
        fragment(function={"name": "add", "arguments": "1}"}),
        fragment(function={"name": "ping", "arguments": "{}"}),
    ) == [("call_0", "add", '{"a":1}'), ("call_1", "ping", "{}")]


async def test_calls_come_in_the_order_of_their_index() -> None:
    assert await calls_of(
        fragment(index=1, id="b", function={"name": "ping", "arguments": "{}"}),
        fragment(index=0, id="a", function={"name": "add", "arguments": "{}"}),
    ) == [("a", "add", "{}"), ("b", "ping", "{}")]


CUT = fragment(index=0, id="a", function={"name": "add", "arguments": '{"a": 1'})


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (recorded(said(delta={"content": "Par"}), done=False), "incomplete_response"),
        (recorded(said(delta={"content": "Par"})), "incomplete_response"),
        (recorded(CUT, done=False), "incomplete_response"),
        (recorded(done=False), "incomplete_response"),
        (recorded(CUT, said(finish_reason="length")), "length"),
        (recorded(said(finish_reason="content_filter")), "content_filter"),
        (recorded(said(finish_reason="error")), "error"),
        (recorded({"error": "boom"}), None),
        (recorded({"error": {"type": "server_error"}}), "server_error"),
        (recorded(fragment(index=0, id="a"), said(finish_reason="stop")), "malformed_response"),
        (recorded('{"choices": [{"delta"', done=False), "malformed_response"),
        (recorded("[" * 100_000), "malformed_response"),
        (recorded([1]), "malformed_response"),
        (Recording(200, {"content-type": "text/html"}, ["<html>"]), "incomplete_response"),
        (Recording(200, {"content-type": "application/json"}, ["{}"]), "incomplete_response"),
    ],
)
async def test_half_an_answer_is_no_answer(answer: Recording, code: str | None) -> None:
    fault = await fault_of(answer)
    assert (fault.kind, fault.code) == (ModelErrorKind.PROVIDER_ERROR, code)
    assert fault.stop_reason is StopReason.PROVIDER_ERROR


async def test_whole_calls_at_the_output_limit_are_an_answer() -> None:
    whole = fragment(index=0, id="a", function={"name": "add", "arguments": "{}"})
    answer = recorded(whole, said(finish_reason="length"))
    async with ReplayServer(answer) as server, adapter_at(server.url) as adapter:
        assert len((await response_of(adapter)).message.tool_calls) == 1


@pytest.mark.parametrize(
    ("status", "code", "kind", "reason"),
    [
        (401, None, ModelErrorKind.AUTHENTICATION, StopReason.PROVIDER_AUTH),
        (403, None, ModelErrorKind.AUTHENTICATION, StopReason.PROVIDER_AUTH),
        (429, "context_length_exceeded", ModelErrorKind.RATE_LIMIT, StopReason.RATE_LIMITED),
        (504, None, ModelErrorKind.TIMEOUT, StopReason.PROVIDER_TIMEOUT),
        (400, "prompt_too_long", ModelErrorKind.CONTEXT_OVERFLOW, StopReason.CONTEXT_OVERFLOW),
        (404, "model_not_found", ModelErrorKind.PROVIDER_ERROR, StopReason.PROVIDER_ERROR),
        (500, None, ModelErrorKind.PROVIDER_ERROR, StopReason.PROVIDER_ERROR),
    ],
)
async def test_each_refusal_has_its_kind(
    status: int, code: str | None, kind: ModelErrorKind, reason: StopReason
) -> None:
    fault = HttpFault(status, {"error": {"message": "no", "code": code}})
    async with (
        ModelServer(replying(Reply(fault=fault))) as server,
        adapter_at(server.url) as adapter,
    ):
        with pytest.raises(ModelProviderError) as error:
            await events_of(adapter)
        assert len(server.requests) == 1, "the SDK must not retry"
    assert (error.value.kind, error.value.status, error.value.code) == (kind, status, code)
    assert error.value.stop_reason is reason
    assert f"HTTP {status}" in str(error.value)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7), ("1.5", 1.5)])
async def test_retry_after_is_read_as_seconds(header: str, seconds: float) -> None:
    fault = await fault_of(Recording(429, {"retry-after": header}, ["{}"]))
    assert fault.retry_after_s == seconds


@pytest.mark.parametrize("usegmt", [True, False])
async def test_retry_after_is_read_as_a_date(usegmt: bool) -> None:
    date = email.utils.formatdate(time.time() + 1000, usegmt=usegmt)
    fault = await fault_of(Recording(429, {"retry-after": date}, ["{}"]))
    assert fault.retry_after_s is not None
    assert 0 < fault.retry_after_s <= 1000


async def test_a_silent_provider_times_out() -> None:
    async with (
        ModelServer(replying(Reply(fault="hang"))) as server,
        adapter_at(server.url, timeout_s=1) as adapter,
    ):
        with pytest.raises(ModelProviderError) as error:
            await events_of(adapter)
        await eventually(lambda: server.abandoned == 1)
    assert error.value.kind is ModelErrorKind.TIMEOUT


async def test_a_stream_that_falls_silent_times_out() -> None:
    reply = Reply(text="one two", chunk_delay_s=30)
    async with (
        ModelServer(replying(reply)) as server,
        adapter_at(server.url, timeout_s=1) as adapter,
    ):
        with pytest.raises(ModelProviderError) as error:
            await events_of(adapter)
    assert error.value.kind is ModelErrorKind.TIMEOUT


async def test_an_unreachable_provider_is_named() -> None:
    async with ModelServer(replying(SLOW)) as server:
        url = server.url
    async with adapter_at(url) as adapter:
        with pytest.raises(ModelProviderError, match=url.split("/")[2]) as error:
            await events_of(adapter)
    assert (error.value.kind, error.value.code) == (ModelErrorKind.PROVIDER_ERROR, "connection")


async def listen(adapter: ModelAdapter, heard: list[ModelStreamEvent]) -> None:
    async for event in adapter.stream(user("hi"), cancellation=CancellationToken()):
        heard += [event]


@pytest.mark.parametrize(
    ("fault", "code"),
    [("reset", "connection"), ("truncate", "incomplete_response"), ("error", "server_error")],
)
async def test_deltas_before_a_broken_end_are_no_answer(fault: Any, code: str) -> None:
    reply = Reply(text="one two three four", fault=fault)
    heard: list[ModelStreamEvent] = []
    async with ModelServer(replying(reply)) as server, adapter_at(server.url) as adapter:
        with pytest.raises(ModelProviderError) as error:
            await listen(adapter, heard)
    assert error.value.code == code
    assert heard == [ModelTextDelta("one "), ModelTextDelta("two ")]


@pytest.mark.parametrize("status", [200, 400, 401])
async def test_no_error_shows_the_key_or_the_prompt(status: int) -> None:
    told = {"error": {"message": f"{KEY} may not say hi-prompt", "code": "x y", "type": KEY + "/"}}
    body = json.dumps(told)
    content = "text/event-stream" if status == 200 else "application/json"
    answer = f"data: {body}\n\n" if status == 200 else body
    fault = await fault_of(Recording(status, {"content-type": content}, [answer]))
    shown = "".join(traceback.format_exception(fault)) + repr(fault) + repr(vars(fault))
    assert KEY not in shown
    assert "hi-prompt" not in shown
    assert fault.__cause__ is None
    assert fault.__context__ is None


async def test_no_repr_of_an_adapter_shows_the_key() -> None:
    async with adapter_at("http://127.0.0.1:9") as adapter:
        assert KEY not in f"{adapter!r} {vars(adapter)!r}"


async def first_event(stream: Any) -> ModelStreamEvent:
    return cast("ModelStreamEvent", await anext(stream))


async def test_closing_the_stream_closes_the_connection() -> None:
    async with ModelServer(replying(SLOW)) as server, adapter_at(server.url) as adapter:
        stream = cast("Any", adapter.stream(user("hi"), cancellation=CancellationToken()))
        async with aclosing(stream):
            assert await first_event(stream) == ModelTextDelta("one ")
        await eventually(lambda: server.abandoned == 1)
        assert not server.connections


async def test_cancelling_the_task_closes_the_connection() -> None:
    async with (
        ModelServer(replying(Reply(text="one two", chunk_delay_s=60))) as server,
        adapter_at(server.url) as adapter,
    ):
        task = asyncio.ensure_future(events_of(adapter))
        await eventually(lambda: len(server.requests) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: server.abandoned == 1)


@pytest.mark.parametrize("reply", [Reply(fault="hang"), Reply(text="one two", chunk_delay_s=60)])
async def test_a_cancelled_run_closes_the_connection(reply: Reply) -> None:
    token = CancellationToken()
    async with ModelServer(replying(reply)) as server, adapter_at(server.url) as adapter:
        task = asyncio.ensure_future(events_of(adapter, cancellation=token))
        await eventually(lambda: len(server.requests) == 1)
        token.cancel("enough")
        with pytest.raises(AgentCancelledError, match="enough"):
            await task
        await eventually(lambda: server.abandoned == 1)


async def test_a_run_cancelled_before_sends_nothing() -> None:
    token = CancellationToken()
    token.cancel()
    async with ModelServer(replying(SLOW)) as server, adapter_at(server.url) as adapter:
        with pytest.raises(AgentCancelledError):
            await events_of(adapter, cancellation=token)
        assert not server.requests


async def test_a_connection_is_used_again() -> None:
    async with ModelServer(replying(SLOW)) as server, adapter_at(server.url) as adapter:
        await events_of(adapter)
        (connection,) = server.connections
        await events_of(adapter)
        assert server.connections == {connection}
        assert len(server.requests) == 2


async def test_an_adapter_serves_many_runs_at_once() -> None:
    async with ModelServer(replying(SLOW)) as server, adapter_at(server.url) as adapter:
        answers = await asyncio.gather(*[response_of(adapter) for _ in range(50)])
    assert {answer.message.content for answer in answers} == {SLOW.text}


async def test_starting_and_stopping_twice_is_harmless() -> None:
    async with ModelServer(replying(SLOW)) as server, adapter_at(server.url) as adapter:
        await adapter.startup()
        await events_of(adapter)
        await adapter.shutdown()


def test_importing_the_models_leaves_the_sdk_alone() -> None:
    code = "import sys, runlane.worker.models; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_an_adapter_that_only_completes_streams_as_well() -> None:
    class Fixed(ModelAdapter):
        async def complete(
            self, context: ModelContext, *, cancellation: CancellationToken
        ) -> AssistantMessage:
            return AssistantMessage(f"{len(context.messages)}")

    assert Fixed().name == "Fixed"
    assert await events_of(Fixed()) == [ModelResponseCompleted(AssistantMessage("1"))]


async def test_a_stream_without_a_response_is_an_error() -> None:
    class Mute(ModelAdapter):
        name = "mute"

        async def stream(
            self, context: ModelContext, *, cancellation: CancellationToken
        ) -> AsyncIterator[ModelStreamEvent]:
            yield ModelTextDelta("Hm")

    with pytest.raises(ModelProviderError, match="model mute"):
        await Mute().complete(user("hi"), cancellation=CancellationToken())


def test_a_fault_survives_pickling() -> None:
    fault = ModelProviderError("no", kind=ModelErrorKind.RATE_LIMIT, status=429, retry_after_s=2)
    copied = pickle.loads(pickle.dumps(fault))
    assert (str(copied), vars(copied)) == ("no", vars(fault))


def test_an_adapter_must_do_something() -> None:
    with pytest.raises(TypeError, match="must define"):
        type("Idle", (ModelAdapter,), {})
