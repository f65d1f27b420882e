"""What several tests of the tools need."""

import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from hypothesis import strategies as st

from runlane.journal.wire.messages import ModelToolCall
from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.tools import (
    BaseHandler,
    FunctionTool,
    FunctionToolHandler,
    PreparedCall,
    ToolContext,
    ToolProgressReporter,
    ToolProgressUpdate,
    ToolRuntime,
)

NASTY_TEXT = st.text(alphabet=list('a0 {}[]:,"\\\n\x00/~é€😀\ud800\udfff'), max_size=30)
"""A small alphabet: a full one builds a Unicode table first, which takes seconds."""

JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=list("ab/~é😀"), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(alphabet=list("ab$"), max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


def context_of_call(
    cancellation: CancellationToken | None = None,
    heard: list[ToolProgressUpdate] | None = None,
) -> ToolContext:
    """The context of a call; what it reports is appended to `heard`."""
    token = cancellation or CancellationToken()
    updates: list[ToolProgressUpdate] = [] if heard is None else heard

    async def hear(update: ToolProgressUpdate) -> None:
        updates.append(update)

    return ToolContext(
        run_id="run",
        session_id="session",
        agent="agent",
        attempt=1,
        turn=2,
        tool_call_id="call_1",
        operation_key="run:2:0",
        cancellation=token,
        progress=ToolProgressReporter(hear, token),
    )


def call_of(name: str, **arguments: Any) -> ModelToolCall:
    return ModelToolCall(id="call_1", name=name, arguments=json.dumps(arguments))


def prepared(runtime: ToolRuntime, name: str, **arguments: Any) -> PreparedCall:
    ready = runtime.prepare(call_of(name, **arguments))
    assert isinstance(ready, PreparedCall), ready
    return ready


@asynccontextmanager
async def runtime_of(
    *tools: FunctionTool[..., Any],
    handlers: Iterable[BaseHandler] = (),
    result_bytes_max: int = 1024,
    cancel_grace_s: float = 5.0,
) -> AsyncGenerator[ToolRuntime]:
    """A started runtime."""
    runtime = ToolRuntime(
        [FunctionToolHandler(tools), *handlers],
        result_bytes_max=result_bytes_max,
        cancel_grace_s=cancel_grace_s,
    )
    await runtime.startup()
    try:
        yield runtime
    finally:
        await runtime.shutdown()
