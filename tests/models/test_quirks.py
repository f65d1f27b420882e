"""Recorded oddities of OpenAI-compatible servers, replayed through the real SDK."""

import json
from itertools import chain, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.support import (
    ReplayServer,
    adapter_at,
    quirk,
    response_of,
    user,
)

from runlane.journal.wire.messages import AssistantMessage, ModelUsage, ToolMessage
from runlane.worker.models import ModelContext, ModelErrorKind, ModelProviderError
from runlane.worker.models.sse import SseDecoder

TOOL_TURNS = ("Q01", "Q03", "Q04", "Q06", "Q07", "Q13", "Q14", "Q27")
TEXTS = ("Q10", "Q12", "Q17", "Q22")
OVERFLOWS = quirk("Q32").responses


def parsed_calls(message: AssistantMessage) -> list[dict[str, Any]]:
    return [
        {"name": call.name, "arguments": json.loads(call.arguments or "{}")}
        for call in message.tool_calls
    ]


def after_tools(message: AssistantMessage) -> ModelContext:
    results = [ToolMessage(call.id, call.name, "done") for call in message.tool_calls]
    return ModelContext((*user("hi").messages, message, *results))


@pytest.mark.parametrize("number", TOOL_TURNS)
async def test_tool_calls_are_read_and_sent_back(number: str) -> None:
    case = quirk(number)
    async with ReplayServer(*case.responses) as server, adapter_at(server.url) as adapter:
        first = (await response_of(adapter)).message
        assert parsed_calls(first) == case.expect["first_turn_tool_calls"], case.why
        second = (await response_of(adapter, after_tools(first))).message
        assert second.content == case.expect["final_text"]
        sent = server.bodies[1]["messages"][1]
        assert all(isinstance(c["function"]["arguments"], str) for c in sent["tool_calls"])
        assert sent["content"] == first.content


@pytest.mark.parametrize("number", TEXTS)
async def test_odd_streams_of_text_are_complete_answers(number: str) -> None:
    case = quirk(number)
    async with ReplayServer(*case.responses) as server, adapter_at(server.url) as adapter:
        response = await response_of(adapter)
    assert response.message == AssistantMessage(case.expect["final_text"]), case.why
    if "usage" in case.expect:
        usage = case.expect["usage"]
        assert response.usage == (ModelUsage(usage["input"], usage["output"]) if usage else None)


async def test_an_error_inside_a_stream_is_no_answer() -> None:
    case = quirk("Q19")
    async with ReplayServer(*case.responses) as server, adapter_at(server.url) as adapter:
        with pytest.raises(ModelProviderError) as error:
            await response_of(adapter)
        assert (error.value.kind, error.value.status) == (ModelErrorKind.PROVIDER_ERROR, 502)
        assert (await response_of(adapter)).message.content == case.expect["final_text"]
        assert len(server.bodies) == case.expect["model_requests"]


async def test_a_retry_after_without_sense_is_ignored() -> None:
    case = quirk("Q25")
    faults: list[tuple[ModelErrorKind, float | None]] = []
    async with ReplayServer(*case.responses) as server, adapter_at(server.url) as adapter:
        for _ in case.responses[:-1]:
            with pytest.raises(ModelProviderError) as error:
                await response_of(adapter)
            faults.append((error.value.kind, error.value.retry_after_s))
        assert (await response_of(adapter)).message.content == case.expect["final_text"]
    assert faults == [
        (ModelErrorKind.RATE_LIMIT, 0.25),
        (ModelErrorKind.RATE_LIMIT, 0.0),
        (ModelErrorKind.PROVIDER_ERROR, None),
    ]


@pytest.mark.parametrize("answer", OVERFLOWS, ids=lambda answer: answer.label)
async def test_an_overflow_is_told_from_other_refusals(answer: Any) -> None:
    async with ReplayServer(answer) as server, adapter_at(server.url) as adapter:
        with pytest.raises(ModelProviderError) as error:
            await response_of(adapter)
    is_overflow = error.value.kind is ModelErrorKind.CONTEXT_OVERFLOW
    assert is_overflow == answer.context_overflow


@given(st.lists(st.integers(0, 700), max_size=8))
def test_where_the_network_cuts_a_stream_makes_no_difference(cuts: list[int]) -> None:
    stream = "".join(quirk("Q17").responses[0].parts).encode()
    bounds = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    decoder = SseDecoder()
    fed = [decoder.feed(stream[a:b]) for a, b in pairwise(bounds)]
    assert [*chain(*fed), *decoder.finish()] == SseDecoder().feed(stream)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_stream_may_end_within_its_last_event(newline: str) -> None:
    decoder = SseDecoder()
    stream = newline.join([": hello", "event: x", "data: 1", "data: 2", "", "id: 7", "", "data:3"])
    assert decoder.feed(stream.encode()) + decoder.finish() == [b"1\n2", b"3"]
    assert decoder.finish() == []
