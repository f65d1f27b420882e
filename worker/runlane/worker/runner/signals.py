"""What wakes a worker: tokens of its queues, and control messages for its runs."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import structlog
from redis.exceptions import RedisError

from runlane.journal.link import CONNECT_TIMEOUT_S, LOST, client_for
from runlane.journal.transitions.inputs import steering
from runlane.journal.wire.control import ControlInput

RETRY_MAX_S: Final = 2.0
BLOCK_S: Final = 30

logger = structlog.get_logger(__name__)


class WakeUps:
    """Takes wake-up tokens on a connection of its own.

    Tokens are hints, never state: whoever misses one finds the run by its next claim. The
    blocking read goes on over calls, since a server ends one only at its own ticks (hz 10).
    """

    def __init__(self, url: str, lists: Sequence[str]) -> None:
        self._client: Any = client_for(url)  # redis-py leaves it untyped
        self._lists = list(lists)
        self._reading: asyncio.Task[str | None] | None = None

    async def wait(self, seconds: float, stop: "asyncio.Task[Any]") -> None:
        """Return at a token, after `seconds`, or when `stop` is done."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        await asyncio.wait(
            {self._reading, stop}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        self.take()

    async def wait_for_slot(self, slot: "asyncio.Task[Any]", stop: "asyncio.Task[Any]") -> None:
        """Return when a slot is free, or `stop` is done; tokens that come now go to others."""
        while not (slot.done() or stop.done()):
            reading: set[asyncio.Task[Any]] = {self._reading} if self._reading else set()
            await asyncio.wait({slot, stop, *reading}, return_when=asyncio.FIRST_COMPLETED)
            if token := self.take():
                await self._pass_on(token)

    def take(self) -> str | None:
        """Return the list that a token was taken from since the last call."""
        if self._reading is None or not self._reading.done():
            return None
        reading, self._reading = self._reading, None
        return reading.result()

    async def close(self) -> None:
        """Stop taking tokens: one that a stopping worker takes is lost to the others."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._reading = None
        await self._client.aclose()

    async def _pass_on(self, token: str) -> None:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._client.execute_command("LPUSH", token, "1")
        except (*LOST, RedisError) as error:
            logger.info("wake_up_dropped", error=str(error))

    async def _read(self) -> str | None:
        try:
            taken: Any = await self._client.execute_command("BLPOP", *self._lists, BLOCK_S)
        except (*LOST, RedisError) as error:
            logger.info("wake_ups_lost", error=str(error))
            await asyncio.sleep(0.2)
            return None
        return None if taken is None else str(taken[0], "utf-8")


async def follow_control(
    url: str,
    channel: str,
    *,
    abort: Callable[[str, str], None],
    lose: Callable[[str, str, str], None],
    steer: Callable[[str, str, ControlInput], None],
) -> None:
    """Hear what becomes of this worker's runs, until cancelled.

    A message that is missed comes with the next renewal or append.

    Args:
        url: The server.
        channel: Of this worker.
        abort: Called with run id and reason for each run that is to stop.
        lose: Called with run id, fence and reason for each lease that was taken away.
        steer: Called with run id, fence and input for each thing that is said to a run.
    """
    delay = 0.05
    while True:
        client: Any = client_for(url)
        pubsub = client.pubsub(ignore_subscribe_messages=True)
        try:
            await pubsub.subscribe(channel)
            async for message in pubsub.listen():
                delay = 0.05
                run_id, _, rest = message["data"].decode().partition("\0")
                if run_id:
                    abort(run_id, rest)
                elif rest.startswith("\0"):
                    steered_id, fence, input_id, content = rest[1:].split("\0", 3)
                    steer(steered_id, fence, steering(input_id, content))
                else:
                    stolen_id, fence, reason = rest.split("\0", 2)
                    lose(stolen_id, fence, reason)
        except LOST as error:
            logger.info("control_channel_lost", error=str(error))
        finally:
            await pubsub.aclose()
            await client.aclose()
        await asyncio.sleep(delay)
        delay = min(delay * 2, RETRY_MAX_S)
