"""What a tool call is given besides its arguments."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from runlane.journal.errors import InvalidInputError
from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.tools.definition import ToolDefinition


class ToolProgressUpdate(Struct, frozen=True):
    """What a running tool says about itself; live only, never journaled.

    Raises:
        InvalidInputError: The message is empty.
    """

    message: str
    data: Any = None

    def __post_init__(self) -> None:
        if not self.message:
            raise InvalidInputError("a progress message must not be empty")


class ToolProgressReporter:
    """Passes the progress of one tool call on, in order, as long as the call is under way.

    Args:
        deliver: Called with each update, one at a time.
        cancellation: Once it is cancelled, updates are dropped.
    """

    def __init__(
        self,
        deliver: Callable[[ToolProgressUpdate], Awaitable[None]],
        cancellation: CancellationToken,
    ) -> None:
        self._deliver = deliver
        self._cancellation = cancellation
        self._turn = asyncio.Lock()
        self._settled = False

    async def report(self, message: str | ToolProgressUpdate, data: Any = None) -> None:
        """Pass an update on, after those that were reported before it.

        It is dropped in silence if the call has settled or was cancelled by then.

        Args:
            message: What to say, or the whole update.
            data: What goes with a message.

        Raises:
            InvalidInputError: The message is empty.
        """
        update = ToolProgressUpdate(message, data) if isinstance(message, str) else message
        async with self._turn:
            if not (self._settled or self._cancellation.cancelled):
                await self._deliver(update)

    def settle(self) -> None:
        """Drop whatever is reported from now on: the call has its result."""
        self._settled = True


class ToolCallContext(Struct, frozen=True, kw_only=True):
    """The call that a tool is asked to do.

    Attributes:
        run_id: The run that asks.
        session_id: The session of the run.
        agent: The agent's name.
        attempt: 1, and one more after each crash or hand-back of the run.
        turn: 1 for the first model response of the run.
        tool_name: The tool that is called.
        arguments: What it is called with. A middleware that changes them hands a context with
            others on (`msgspec.structs.replace`).
        tool_definition: The tool as the model was told of it.
        tool_call_id: The provider's id of the call: data only, since providers repeat it.
        operation_key: `<run_id>:<turn>:<index>`, the same in every attempt: what to hand to the
            outside world as its idempotency key.
        cancellation: Says when to stop.
        progress: Tells subscribers how far the call is.
        count: Counts this call under a name, and returns how many calls of the run were counted
            under it, this one included. A call counts once under one name however often that is
            asked; the counts are journaled, and survive a crash of the worker.
    """

    run_id: str
    session_id: str
    agent: str
    attempt: int
    turn: int
    tool_name: str
    arguments: dict[str, Any]
    tool_definition: ToolDefinition
    tool_call_id: str
    operation_key: str
    cancellation: CancellationToken
    progress: ToolProgressReporter
    count: Callable[[str], int]
