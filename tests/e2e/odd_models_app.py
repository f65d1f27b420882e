"""An agent whose model, in the worker's own process, misbehaves as the task says."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from runlane.journal.wire.messages import AssistantMessage, ModelToolCall, UserMessage
from runlane.worker import (
    Agent,
    App,
    CancellationToken,
    ModelAdapter,
    ModelContext,
    ModelResponseCompleted,
    ModelTextDelta,
    ModelThinkingDelta,
)
from runlane.worker.models import ModelStreamEvent

GATE: Final = Path(os.environ["LEDGER"]).with_name("go")


class OddSignal(BaseException):
    """No `Exception`."""


class MuteError(Exception):
    def __str__(self) -> str:
        raise LookupError("no words")


class OddModel(ModelAdapter):
    async def stream(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AsyncIterator[ModelStreamEvent]:
        yield ModelTextDelta("well\ud800")
        yield ModelThinkingDelta("hm\ud800")
        last = context.messages[-1]
        task = last.content if isinstance(last, UserMessage) else ""
        await _misbehave(task)
        odd = ModelToolCall("\ud800", "\ud800", '{"a": "\ud800"}')
        tool_calls = (odd,) if task == "call" else ()
        yield ModelResponseCompleted(AssistantMessage("well\ud800", tool_calls))


async def _misbehave(task: str) -> None:
    match task:
        case "cancel":
            raise asyncio.CancelledError
        case "cancel its task":
            task_of_model = asyncio.current_task()
            assert task_of_model is not None
            task_of_model.cancel()
            await asyncio.Event().wait()
        case "leave":
            sys.exit(7)
        case "signal":
            raise OddSignal("odd")
        case "surrogate":
            raise ValueError("a\ud800b")
        case "mute":
            raise MuteError
        case "shout":
            raise ValueError("x" * 20_000_000)
        case "resent" if not GATE.exists():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as error:
                raise ValueError("not now") from error
        case _:
            pass


app = App([Agent("odd", OddModel())])
