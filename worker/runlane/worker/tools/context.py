"""What a tool call is given besides its arguments."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from runlane.journal.errors import InvalidInputError
from runlane.worker.control.cancellation import CancellationToken


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

    async def report(self, message: str, data: Any = None) -> None:
        """Pass an update on, after those that were reported before it.

        It is dropped in silence if the call has settled or was cancelled by then.

        Raises:
            InvalidInputError: The message is empty.
        """
        update = ToolProgressUpdate(message, data)
        async with self._turn:
            if not (self._settled or self._cancellation.cancelled):
                await self._deliver(update)

    def settle(self) -> None:
        """Drop whatever is reported from now on: the call has its result."""
        self._settled = True


class ToolContext(Struct, frozen=True, kw_only=True):
    """The call that a tool is asked to do.

    Attributes:
        run_id: The run that asks.
        session_id: The session of the run.
        agent: The agent's name.
        attempt: 1, and one more after each crash or hand-back of the run.
        turn: 1 for the first model response of the run.
        tool_call_id: The provider's id of the call: data only, since providers repeat it.
        operation_key: `<run_id>:<turn>:<index>`, the same in every attempt: what to hand to the
            outside world as its idempotency key.
        cancellation: Says when to stop.
        progress: Tells subscribers how far the call is.
    """

    run_id: str
    session_id: str
    agent: str
    attempt: int
    turn: int
    tool_call_id: str
    operation_key: str
    cancellation: CancellationToken
    progress: ToolProgressReporter
