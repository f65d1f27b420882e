"""A result that is none must not be read as one: the request has no other place to say so."""

import json

import pytest

from runlane.journal.wire.messages import ToolMessage
from runlane.worker.models import ModelConfig, ModelContext
from runlane.worker.models.adapters.openai_chat.request import request_body
from runlane.worker.tools import ToolResult
from runlane.worker.tools.validation import ArgumentError

CONFIG = ModelConfig(base_url="http://127.0.0.1:1/v1", api_key="k", model="m")
RESULTS = {
    "error": ToolResult.failed("pay", "no luck"),
    "invalid": ToolResult.invalid("pay", (ArgumentError("/amount", "type", "no number"),)),
    "cancelled": ToolResult.cancelled("pay", "enough"),
    "outcome_unknown": ToolResult.unknown("pay"),
}


@pytest.mark.parametrize("status", RESULTS)
def test_the_model_reads_what_became_of_a_call(status: str) -> None:
    result = RESULTS[status]
    assert result.is_error
    message = ToolMessage("c", "pay", result.content, is_error=True)
    (sent,) = request_body(CONFIG, ModelContext(messages=(message,)))["messages"]
    told = json.loads(sent["content"])
    assert (sent["tool_call_id"], told["tool"]) == ("c", "pay")
    assert told["status"] == ("error" if status == "invalid" else status)
