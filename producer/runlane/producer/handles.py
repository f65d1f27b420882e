"""A run that was accepted: wait for it, follow it, stop it."""

import asyncio
import math
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from typing import Any, Final

from runlane.journal import transitions
from runlane.journal.errors import ResultTimeoutError
from runlane.journal.reader import record_of_message
from runlane.journal.wire.control import ControlReceipt
from runlane.journal.wire.events import Event, EventKind
from runlane.journal.wire.records import CONTROL_BRANCH, RunFinished
from runlane.journal.wire.results import AgentRunResult
from runlane.producer.admission import check_cursor, check_reason, check_timeout
from runlane.producer.deployment import Deployment
from runlane.producer.hub import Signal
from runlane.producer.runs import RunInfo, RunPlace, read_result, read_run
from runlane.producer.subscription import Subscription

ABORT_REASON: Final = "aborted by the caller"
REREAD_S: Final = 2.0
"""After this long without a message a waiting `result()` looks for itself."""


class RunHandle:
    """One run. `await handle` waits for its result.

    Attributes:
        run_id: The run.
        session_id: Its session.
        branch_id: Its branch.
    """

    def __init__(self, deployment: Deployment, place: RunPlace) -> None:
        self.run_id = place.run_id
        self.session_id = place.session_id
        self.branch_id = place.branch_id
        self._place = place
        self._deployment = deployment
        self._partition = deployment.partition

    def __repr__(self) -> str:
        return f"RunHandle({self.run_id!r})"

    def __await__(self) -> Generator[Any, None, AgentRunResult]:
        return self.result().__await__()

    async def result(self, timeout: float | None = None) -> AgentRunResult:
        """Wait for the end of the run and return what it came to, whatever that is.

        Args:
            timeout: How long to wait, in seconds; None for as long as it takes.

        Raises:
            ResultTimeoutError: The run has not ended in that time; it goes on.
            InvalidInputError: The timeout is negative or not a number.
            UnknownRunError: The server has lost the run, or its session was deleted.
            UndecodableError: The record of its end is damaged or lost.
            ArchiveError: That record is archived and cannot be read.
            ServerUnavailableError: The server is away.
        """
        deadline = check_timeout(timeout)
        try:
            async with asyncio.timeout(deadline):
                return await self._result()
        except TimeoutError as error:
            raise ResultTimeoutError(run_id=self.run_id, timeout=deadline or 0) from error

    async def status(self) -> RunInfo:
        """Return the run as of now.

        Raises:
            UnknownRunError: The server has lost the run, or its session was deleted.
            UndecodableError: The record of its end is damaged or lost.
            ArchiveError: That record is archived and cannot be read.
            ServerUnavailableError: The server is away.
        """
        return await read_run(self._partition, self.run_id)

    def events(self, after: str | None = None) -> AsyncGenerator[Event, None]:
        """Return the events of the run, from its acceptance to its end.

        Provisional events are heard while they happen. The iterator ends with the terminal
        event, at once if the run is already over. It outlives any absence of the server.

        Args:
            after: The cursor of a committed event: only what comes after it. If the journal
                does not have that record any more, the first event is `journal_reset` and
                the run begins anew.

        Raises:
            InvalidInputError: The cursor is malformed; raised by this call, the others while
                iterating.
            UnknownRunError: The server has lost the run.
            UndecodableError: A record is damaged or of a newer version.
        """
        return self._events(check_cursor(after))

    async def abort(self, reason: str = ABORT_REASON) -> ControlReceipt:
        """Ask the run to stop; asking again is accepted too, and the first reason stays.

        Raises:
            InvalidInputError: The reason is blank, too long or no valid text.
            UnknownRunError: The server has lost the run.
            ServerUnavailableError: The server is away.
        """
        return await transitions.abort(
            self._partition, self.run_id, branch_id=self.branch_id, reason=check_reason(reason)
        )

    async def _events(self, after: str | None) -> AsyncGenerator[Event, None]:
        over = await self._is_over()
        subscription = Subscription(self._partition, self.session_id, after=after, run=self._place)
        source = subscription.replay() if over else subscription.follow(self._deployment.hub)
        async with aclosing(source):
            async for event in source:
                yield event
                if event.terminal:
                    return
                if event.kind is EventKind.JOURNAL_RESET:
                    await self._is_over()  # the run itself may be among what was lost

    async def _is_over(self) -> bool:
        return await read_result(self._partition, self.run_id, retry_s=math.inf) is not None

    async def _result(self) -> AgentRunResult:
        result = await read_result(self._partition, self.run_id)
        if result is not None:
            return result
        with self._deployment.hub.join(self._partition.keys.events(self.session_id)) as feed:
            while True:
                message = await feed.next(REREAD_S)
                result = self._result_in(message)
                if result is None and (isinstance(message, Signal) or message[:1] == b"D"):
                    result = await read_result(self._partition, self.run_id)
                if result is not None:
                    return result

    def _result_in(self, message: bytes | Signal) -> AgentRunResult | None:
        """Return the result that a live record of the run's end carries."""
        if isinstance(message, Signal) or not message.startswith(b"R"):
            return None
        if b"\0run_finished\0" not in message:
            return None
        record = record_of_message(message[1:])
        ours = record.branch_id in (self.branch_id, CONTROL_BRANCH)
        if not ours or not isinstance(record.body, RunFinished):
            return None
        return record.body.result if record.body.run_id == self.run_id else None
