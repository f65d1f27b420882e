"""The server side of a deployment: its keys, and calls that outlive a lost connection."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Self
from uuid import uuid4

from redis.exceptions import (
    BusyLoadingError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ResponseError,
)

from runlane.journal.archive.archive import Archive
from runlane.journal.archive.opening import open_store
from runlane.journal.confirmed_link import ConfirmedLink
from runlane.journal.errors import (
    DurabilityError,
    RunlaneError,
    ServerUnavailableError,
    ServerUnsuitableError,
    SessionOutcomeUnknownError,
)
from runlane.journal.keys import Keys
from runlane.journal.link import Link, is_demotion
from runlane.journal.lua.scripts import Script, load
from runlane.journal.settings import BLOB_BYTES_MAX, COLD_S, KEEP_RUNS_S, Durability, Settings

VERSION_MIN: Final = (6, 2)
SCHEMA: Final = "1"
PARTITIONS: Final = "1"
RETRY_DELAY_MAX_S: Final = 1.0

_CARRIED_OUT: Final = (b"OK", b"DUP", b"EXISTS", b"ACCEPTED", b"ENDED")
"""What the reply of a script begins with when there is something for replicas to confirm."""

Arg = str | bytes | int | float
Patience = float | Callable[[], float]
"""How long to go on, in seconds; a function is asked again each time, and 0 ends it."""


class Partition:
    """Every call of a process to the server goes through here.

    Attributes:
        keys: Names of all keys.
        link: The shared connection.
        url: The server, for connections that must block.
        archive: Where older records lie; None if this process knows of no archive.
        keep_runs_ms: How long an ended run is known.
        cold_ms: How old the last record of an idle lane is when it may go to the archive.
        blob_bytes_max: The largest content that is kept beside a journal.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str,
        retry_s: float,
        keep_runs_s: int = KEEP_RUNS_S,
        cold_s: int = COLD_S,
        blob_bytes_max: int = BLOB_BYTES_MAX,
        archive: Archive | None = None,
        durability: Durability = "local",
    ) -> None:
        self.url = url
        self.archive = archive
        self.keep_runs_ms = 1000 * keep_runs_s
        self.cold_ms = 1000 * cold_s
        self.blob_bytes_max = blob_bytes_max
        self.keys = Keys.of(prefix)
        self.link = Link(url)
        self._confirmed = (
            ConfirmedLink(url, channel=self.keys.barrier(), every_replica=durability == "ha-all")
            if durability in ("ha-acked", "ha-all")
            else None
        )
        self._retry_s = retry_s

    @classmethod
    def of(cls, url: str, settings: Settings) -> Self:
        """Return the deployment that the settings name, on a server.

        Raises:
            InvalidInputError: The URL or the archive is none.
        """
        return cls(
            url,
            prefix=settings.prefix,
            retry_s=settings.retry_s,
            keep_runs_s=max(settings.keep_runs_s, settings.idempotency_s),
            cold_s=settings.cold_s,
            blob_bytes_max=settings.blob_bytes_max,
            archive=Archive(open_store(settings.archive)) if settings.archive else None,
            durability=settings.durability,
        )

    async def open(self, *, retry_s: float | None = None) -> None:
        """Check that the server can be used, and claim the prefix on its first use.

        Args:
            retry_s: How long to go on while the server is away; None for the setting.

        Raises:
            ServerUnavailableError: It does not answer.
            ServerUnsuitableError: Wrong password, too old, or the prefix was made otherwise.
        """
        info: bytes = await self.call("INFO", "server", retry_s=retry_s)
        check_version(info.decode())
        await self.call("HSETNX", self.keys.meta(), "deployment", uuid4().hex, retry_s=retry_s)
        for field, value in (("schema", SCHEMA), ("partitions", PARTITIONS)):
            await self.call("HSETNX", self.keys.meta(), field, value, retry_s=retry_s)
            stored: bytes = await self.call("HGET", self.keys.meta(), field, retry_s=retry_s)
            if stored.decode() != value:
                raise ServerUnsuitableError(
                    f"prefix {self.keys.root!r} was made with {field} {stored.decode()}, this "
                    f"runlane uses {value}; choose another RUNLANE_PREFIX or the runlane it was "
                    "made with"
                )

    async def close(self) -> None:
        """Close the connections."""
        await self.link.close()
        if self._confirmed is not None:
            await self._confirmed.close()

    async def call(self, *command: Arg, retry_s: float | None = None) -> Any:
        """Send a command that may safely be sent again, until it is answered.

        Args:
            command: Name and arguments.
            retry_s: How long to go on while the server is away; None for the setting.

        Raises:
            ServerUnavailableError: It stayed away for that long.
            ServerUnsuitableError: It refuses the command.
        """
        return await self._retry(partial(self._once, command, None), retry_s)

    async def call_in_order(
        self, *commands: tuple[Arg, ...], retry_s: float | None = None
    ) -> list[Any]:
        """Send commands one after another and return their replies.

        Where a connection is lost all are sent again, so that no reply is older than one before it.

        Args:
            commands: Name and arguments of each; all may safely be sent again.
            retry_s: How long to go on while the server is away; None for the setting.

        Raises:
            ServerUnavailableError: It stayed away for that long.
            ServerUnsuitableError: It refuses a command.
        """

        async def once() -> list[Any]:
            return await asyncio.gather(*(self._once(command, None) for command in commands))

        replies: list[Any] = await self._retry(once, retry_s)
        return replies

    async def transition(
        self,
        name: str,
        request_id: str,
        *args: Arg,
        retry_s: Patience | None = None,
        barrier: bool = False,
    ) -> list[Any]:
        """Carry out a Lua script, again with the same arguments after a lost reply.

        Args:
            name: The script.
            request_id: What the script recognises the request by; for error texts.
            args: ARGV, as the header of the script says.
            retry_s: How long to go on while the server is away, or replicas do not confirm;
                None for the setting.
            barrier: Whether to return only when replicas have it, and everything before it;
                at the levels `ha-acked` and `ha-all`, nothing at the others.

        Raises:
            DurabilityError: It was carried out, and too few replicas confirmed it in that time.
            SessionOutcomeUnknownError: It was sent, and no reply came in that time.
            ServerUnavailableError: It could not be sent in that time.
            ServerUnsuitableError: The server refuses the script (out of memory, say).
        """
        script = load(name)
        assert len(args) >= script.arg_count_min - 1, f"{name} takes {script.arg_count_min} ARGV"
        command = ("EVALSHA", script.sha, 1, self.keys.root, *args)
        try:
            if barrier and self._confirmed is not None:
                once = partial(self._once_confirmed, self._confirmed, request_id, command, script)
            else:
                once = partial(self._once, command, script)
            reply = await self._retry(once, retry_s)
        except ServerUnavailableError as error:
            if not error.sent:
                raise
            raise SessionOutcomeUnknownError(
                transition=name, request_id=request_id, detail=str(error)
            ) from error
        if script.codes and reply[0] == b"NEWER_SCHEMA":
            raise ServerUnsuitableError(
                f"a newer runlane has written this lane (schema {reply[1].decode()}); "
                "nothing was changed. Upgrade this process"
            )
        return list(reply)

    async def _retry(self, once: Callable[[], Awaitable[Any]], retry_s: Patience | None) -> Any:
        clock = asyncio.get_running_loop().time
        patience = self._retry_s if retry_s is None else retry_s
        began = clock()

        def is_over() -> bool:
            return patience() <= 0 if callable(patience) else clock() >= began + patience

        delay = 0.02
        sent = False
        while True:
            try:
                return await once()
            except DurabilityError:
                sent = True
                if is_over():
                    raise
            except (ServerUnavailableError, BusyLoadingError, ResponseError) as error:
                if isinstance(error, ResponseError) and not _passes(error):
                    raise refused(error) from error
                sent = sent or getattr(error, "sent", False)
                if is_over():
                    raise ServerUnavailableError(_absence(error), sent=sent) from error
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 (jitter)
            delay = min(delay * 2, RETRY_DELAY_MAX_S)

    async def _once(self, command: tuple[Arg, ...], script: Script | None) -> Any:
        try:
            return await self.link.call(*command)
        except NoScriptError:
            assert script is not None
            return await self.link.call("EVAL", script.source, *command[2:])

    async def _once_confirmed(
        self, link: ConfirmedLink, request_id: str, command: tuple[Arg, ...], script: Script
    ) -> Any:
        try:
            reply, acknowledgement = await link.call(*command)
        except NoScriptError:
            reply, acknowledgement = await link.call("EVAL", script.source, *command[2:])
        if reply[0] in _CARRIED_OUT and not acknowledgement.enough:
            raise DurabilityError(
                transition=script.name,
                request_id=request_id,
                replicas=acknowledgement.replicas,
                needed=acknowledgement.needed,
            )
        return reply


def _passes(error: ResponseError) -> bool:
    """Return whether a server that refuses now may accept, or another one in its place."""
    return is_demotion(error) or str(error).startswith("NOREPLICAS")


def _absence(error: Exception) -> str:
    if isinstance(error, ResponseError):
        if is_demotion(error):
            return "the Redis server is a read-only replica; set RUNLANE_REDIS_URL to its master"
        return (
            "the Redis server refuses writes since it has too few replicas (min-replicas-to-write)"
        )
    return str(error)


def check_version(info: str) -> None:
    """Refuse a server that is too old; `info` is the text of INFO server.

    Raises:
        ServerUnsuitableError: It is older than 6.2.
    """
    fields = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
    version = fields.get("redis_version", "0")
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < VERSION_MIN:
        raise ServerUnsuitableError(
            f"the Redis server has version {version}; runlane needs Redis 6.2 or newer, or Valkey"
        )


def refused(error: ResponseError) -> RunlaneError:
    """Return what to raise when a server refuses a command; nothing was written."""
    text = str(error)
    if isinstance(error, OutOfMemoryError) or "OOM" in text:
        return ServerUnsuitableError(
            f"the Redis server is full ({text}); nothing was written. Raise maxmemory, or "
            "delete data"
        )
    if isinstance(error, NoPermissionError) or "NOPERM" in text:
        return ServerUnsuitableError(
            f"the Redis server forbids this to the user in RUNLANE_REDIS_URL ({text}); check "
            "its ACL"
        )
    return ServerUnsuitableError(f"the Redis server refuses a command: {text}")
