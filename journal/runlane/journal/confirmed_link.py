"""A connection on which a call is over only when replicas have what it wrote.

All calls that lie close together in time share one WAIT. A WAIT covers what its own connection
wrote, and a repeated request that the server recognises writes nothing: Valkey then answers a
WAIT at once. So a message that nobody hears, which replicas get too, goes before each WAIT: what
covers it covers everything that the server did before it, on whatever connection.
"""

import asyncio
import re
from typing import Any, Final

from msgspec import Struct

from runlane.journal.link import Link

ACKNOWLEDGE_MS: Final = 1000
"""How long one WAIT may take; calls that come meanwhile wait for it too."""

_ONLINE: Final = re.compile(rb"^slave\d+:.*\bstate=online\b", re.MULTILINE)


class Acknowledgement(Struct, frozen=True):
    """Who has what was written.

    Attributes:
        replicas: How many replicas have it.
        needed: How many must.
    """

    replicas: int
    needed: int

    @property
    def enough(self) -> bool:
        """Whether it is confirmed."""
        return self.replicas >= self.needed


class ConfirmedLink:
    """A link whose replies say how many replicas have what was written.

    Args:
        url: The server.
        channel: Where the message goes that nobody hears.
        every_replica: Whether each connected replica must confirm, rather than any one.
    """

    def __init__(self, url: str, *, channel: str, every_replica: bool) -> None:
        self._link = Link(url)
        self._channel = channel
        self._every_replica = every_replica
        self._needed = 1
        self._round: asyncio.Task[Acknowledgement] | None = None

    async def call(self, *command: str | bytes | int | float) -> tuple[Any, Acknowledgement]:
        """Send a command; return its reply, and who has what it wrote.

        Raises:
            ServerUnavailableError: The server is away. If it was reached before, it may have
                carried the command out.
            ServerUnsuitableError: It refuses the credentials.
            InvalidInputError: A text cannot be encoded; nothing was sent.
            redis.exceptions.ResponseError: It refuses the command, or the WAIT.
        """
        sent = self._link.put(*command)
        if self._round is None:
            self._round = asyncio.create_task(self._confirm())
        outcome: tuple[Any, Acknowledgement | BaseException] = await asyncio.gather(
            sent, asyncio.shield(self._round), return_exceptions=True
        )
        reply, acknowledgement = outcome
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(acknowledgement, BaseException):
            raise acknowledgement
        return reply, acknowledgement

    async def close(self) -> None:
        """Close the connection; calls in flight fail."""
        await self._link.close()

    async def _confirm(self) -> Acknowledgement:
        """Ask who has what was sent until now."""
        self._round = None
        asked_for = self._needed
        acknowledgement = await self._ask()
        if not acknowledgement.enough and acknowledgement.needed > asked_for:
            return await self._ask()  # there are more replicas than were known
        return acknowledgement

    async def _ask(self) -> Acknowledgement:
        questions = [
            self._link.put("PUBLISH", self._channel, ""),
            self._link.put("WAIT", self._needed, ACKNOWLEDGE_MS),
        ]
        if self._every_replica:
            questions.append(self._link.put("INFO", "replication"))
        _, replicas, *info = await asyncio.gather(*questions)
        if info:
            self._needed = max(len(_ONLINE.findall(info[0])), 1)
        return Acknowledgement(replicas=replicas, needed=self._needed)
