"""What stands between a model's tool call and the tool."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self, TypeAlias

from runlane.journal.errors import InvalidInputError
from runlane.worker.tools.context import ToolCallContext
from runlane.worker.tools.definition import ToolDefinition
from runlane.worker.tools.effects import StepOutcome

ToolNext: TypeAlias = Callable[[ToolCallContext], Awaitable[StepOutcome]]
"""The rest of the chain: the next middleware, or the tool."""


class ToolMiddleware(ABC):
    """Sees each tool call of an agent, and may answer in the place of the tool.

    One object serves all runs of a worker side by side: what it must know of a run it counts by
    `ToolCallContext.count`. That a call begins is journaled only once the whole chain has let it
    through. A tool with side effects is called once at most, whatever a middleware does.

    Attributes:
        immediate: Whether it decides at once, without waiting for anything. The model's response
            is then journaled together with the begin of the call; else it is journaled before.

    Raises:
        InvalidInputError: It has an `on_task_start`, which nobody would call.
    """

    immediate: bool = False

    def __new__(cls, *_args: Any, **_options: Any) -> Self:
        """Refuse what would never be called."""
        refuse_task_start(cls)
        return super().__new__(cls)

    def configure_tools(  # noqa: B027  most middlewares need none of these
        self, definitions: Sequence[ToolDefinition]
    ) -> None:
        """Look at the tools that there are; called once, before `startup`."""

    async def startup(self) -> None:  # noqa: B027
        """Get ready; called once, before any call."""

    async def shutdown(self) -> None:  # noqa: B027
        """Let go of what `startup` took; called once, after every call."""

    @abstractmethod
    async def __call__(self, context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        """Return what came of a call: of `await call_next(context)`, or something else.

        What it raises becomes an error result that the model reads.
        """


def refuse_task_start(kind: type) -> None:
    """Refuse a class that counts on being told when a run starts.

    Raises:
        InvalidInputError: It has an `on_task_start`.
    """
    if hasattr(kind, "on_task_start"):
        raise InvalidInputError(
            f"{kind.__name__} has an on_task_start, which is never called: it is shared by runs "
            "that go on at the same time, and after a crash elsewhere. Count what belongs to one "
            "run by `count` of the call's context, or keep it by its run_id, outside the process"
        )
