"""What tests of middlewares need."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace
from tests.tools.support import context_of_call, execute, prepared, runtime_of

from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.tools import (
    FunctionTool,
    StepOutcome,
    ToolCallContext,
    ToolMiddleware,
    ToolNext,
    ToolResult,
    ToolRuntime,
)

Act = Callable[[ToolCallContext, ToolNext], Awaitable[StepOutcome]]


class Acting(ToolMiddleware):
    """Does with a call what a function does."""

    def __init__(self, act: Act) -> None:
        self._act = act

    async def __call__(self, context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        return await self._act(context, call_next)


class Intents:
    """Keeps the intents of calls in memory.

    Args:
        first: What happens before one is kept.

    Attributes:
        begun: The arguments of each call that has begun.
    """

    def __init__(self, first: Callable[[], Awaitable[None]] | None = None) -> None:
        self.begun: list[dict[str, Any]] = []
        self._first = first

    async def begin(self, context: ToolCallContext) -> None:
        if self._first is not None:
            await self._first()
        self.begun.append(context.arguments)


class Counts:
    """Counts the calls of one run, as its journal does."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def count(self, name: str) -> int:
        self.counts[name] = self.counts.get(name, 0) + 1
        return self.counts[name]


async def go_on(context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
    return await call_next(context)


async def call(
    runtime: ToolRuntime,
    name: str,
    *,
    intents: Intents | None = None,
    token: CancellationToken | None = None,
    counts: Counts | None = None,
    **arguments: Any,
) -> ToolResult:
    """Make a call."""
    context = replace(context_of_call(token), count=(counts or Counts()).count)
    ready = prepared(runtime, name, **arguments)
    return await execute(runtime, ready, context, (intents or Intents()).begin)


async def call_through(
    acts: list[Act],
    tool: FunctionTool[..., Any],
    *,
    intents: Intents | None = None,
    token: CancellationToken | None = None,
    cancel_grace_s: float = 5.0,
    **arguments: Any,
) -> ToolResult:
    """Make one call of a tool through middlewares that do what the functions do."""
    middlewares = [Acting(act) for act in acts]
    async with runtime_of(tool, middlewares=middlewares, cancel_grace_s=cancel_grace_s) as runtime:
        return await call(runtime, tool.definition.name, intents=intents, token=token, **arguments)
