"""What the loop asks of a model, and what it hears back, whoever the provider is."""

from collections.abc import AsyncIterator
from typing import Any

from msgspec import Struct

from runlane.journal.wire.messages import AssistantMessage, ContextMessage, ModelUsage
from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.models.faults import ModelProviderError


class ToolSchema(Struct, frozen=True, kw_only=True):
    """What a model is told about one tool.

    Attributes:
        name: What the model calls it.
        description: When and how to use it; None says nothing.
        parameters: JSON Schema of the arguments, an object schema.
        strict: Whether the provider shall force arguments to fit; None leaves it the choice.
    """

    name: str
    description: str | None = None
    parameters: dict[str, Any]
    strict: bool | None = None


class ModelContext(Struct, frozen=True):
    """Everything that one model request carries.

    Attributes:
        messages: The conversation, oldest first.
        tools: The tools that the model may call.
    """

    messages: tuple[ContextMessage, ...]
    tools: tuple[ToolSchema, ...] = ()


class ModelTextDelta(Struct, frozen=True):
    """A further piece of the answer's text; provisional until the response is complete."""

    delta: str


class ModelThinkingDelta(Struct, frozen=True):
    """A further piece of the model's reasoning; never part of the answer."""

    delta: str


class ModelResponseCompleted(Struct, frozen=True):
    """The whole response: the last event of a stream.

    Attributes:
        message: What enters the transcript.
        usage: Tokens of this request; None if the provider did not report them.
    """

    message: AssistantMessage
    usage: ModelUsage | None = None


ModelStreamEvent = ModelTextDelta | ModelThinkingDelta | ModelResponseCompleted
"""What `ModelAdapter.stream` yields: any number of deltas, then one completed response."""


class ModelAdapter:
    """One model of one provider, shared by all runs of a process.

    An adapter writes `stream`, or just `complete`: each is by default made from the other.

    Attributes:
        name: The model's id in records and metrics; the name of the class if none is set.
    """

    name: str

    def __init_subclass__(cls) -> None:
        if cls.complete is ModelAdapter.complete and cls.stream is ModelAdapter.stream:
            raise TypeError(f"{cls.__name__} must define complete() or stream()")
        if not hasattr(cls, "name"):
            cls.name = cls.__name__

    async def startup(self) -> None:
        """Acquire what requests need; called before the first one."""

    async def shutdown(self) -> None:
        """Release what `startup` acquired; no request is under way."""

    async def complete(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AssistantMessage:
        """Return the model's whole response.

        Raises:
            ModelProviderError: There is no complete response.
            AgentCancelledError: `cancellation` came first.
        """
        message = None
        async for event in self.stream(context, cancellation=cancellation):
            if isinstance(event, ModelResponseCompleted):
                message = event.message
        if message is None:
            raise ModelProviderError(f"model {self.name}: the stream held no complete response")
        return message

    async def stream(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AsyncIterator[ModelStreamEvent]:
        """Yield the response as it comes; the last event is its `ModelResponseCompleted`.

        Whoever stops before the last event closes the iterator (`contextlib.aclosing`).

        Raises:
            ModelProviderError: There is no complete response; deltas that came are void.
            AgentCancelledError: `cancellation` came first.
        """
        yield ModelResponseCompleted(await self.complete(context, cancellation=cancellation))
