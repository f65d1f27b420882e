"""What several tests of the tools need."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from hypothesis import strategies as st

from runlane.journal.wire.blobs import BlobRef, pack_blob
from runlane.journal.wire.messages import ModelToolCall
from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.tools import (
    BaseHandler,
    FunctionTool,
    FunctionToolHandler,
    PreparedCall,
    ToolCallContext,
    ToolDefinition,
    ToolMiddleware,
    ToolProgressReporter,
    ToolProgressUpdate,
    ToolResult,
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
) -> ToolCallContext:
    """The context of a call; what it reports is appended to `heard`."""
    token = cancellation or CancellationToken()
    updates: list[ToolProgressUpdate] = [] if heard is None else heard

    async def hear(update: ToolProgressUpdate) -> None:
        updates.append(update)

    return ToolCallContext(
        run_id="run",
        session_id="session",
        agent="agent",
        attempt=1,
        turn=2,
        tool_name="t",
        arguments={},
        tool_definition=ToolDefinition("t"),
        tool_call_id="call_1",
        operation_key="run:2:0",
        cancellation=token,
        progress=ToolProgressReporter(hear, token),
        count=lambda _: 1,
    )


class Blobs:
    """Keeps content as a session does.

    Attributes:
        kept: All of it.
    """

    def __init__(self) -> None:
        self.kept: dict[BlobRef, bytes] = {}

    async def keep(self, content: bytes, media_type: str) -> BlobRef:
        ref = pack_blob(content, media_type).ref
        self.kept[ref] = content
        return ref


def call_of(name: str, **arguments: Any) -> ModelToolCall:
    return ModelToolCall(id="call_1", name=name, arguments=json.dumps(arguments))


def prepared(runtime: ToolRuntime, name: str, **arguments: Any) -> PreparedCall:
    ready = runtime.prepare(call_of(name, **arguments))
    assert isinstance(ready, PreparedCall), ready
    return ready


def context_for(ready: PreparedCall, context: ToolCallContext | None = None) -> ToolCallContext:
    """The context of this call."""
    return msgspec.structs.replace(
        context or context_of_call(),
        tool_name=ready.definition.name,
        tool_definition=ready.definition,
        arguments=ready.arguments,
    )


async def execute(
    runtime: ToolRuntime,
    ready: PreparedCall,
    context: ToolCallContext | None = None,
    begin: Callable[[ToolCallContext], Awaitable[None]] | None = None,
) -> ToolResult:
    """Run a call; without `begin`, nobody journals its intent."""

    async def begin_at_once(_: ToolCallContext) -> None: ...

    call = msgspec.structs.replace(
        context or context_of_call(),
        tool_name=ready.definition.name,
        tool_definition=ready.definition,
        arguments=ready.arguments,
    )
    return await runtime.execute(ready, call, begin=begin or begin_at_once)


@asynccontextmanager
async def runtime_of(
    *tools: FunctionTool[..., Any],
    handlers: Iterable[BaseHandler] = (),
    middlewares: Sequence[ToolMiddleware] = (),
    result_bytes_max: int = 1024,
    cancel_grace_s: float = 5.0,
) -> AsyncGenerator[ToolRuntime]:
    """A started runtime."""
    runtime = ToolRuntime(
        [FunctionToolHandler(tools), *handlers],
        middlewares,
        result_bytes_max=result_bytes_max,
        cancel_grace_s=cancel_grace_s,
    )
    await runtime.startup()
    try:
        yield runtime
    finally:
        await runtime.shutdown()
