"""The server side of a deployment: its keys, and calls that outlive a lost connection."""

import asyncio
import random
from typing import Any, Final

from redis.exceptions import (
    BusyLoadingError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)

from runlane.journal.errors import (
    RunlaneError,
    ServerUnavailableError,
    ServerUnsuitableError,
    SessionOutcomeUnknownError,
)
from runlane.journal.keys import Keys
from runlane.journal.link import Link
from runlane.journal.lua.scripts import Script, load

VERSION_MIN: Final = (6, 2)
SCHEMA: Final = "1"
PARTITIONS: Final = "1"
RETRY_DELAY_MAX_S: Final = 1.0

Arg = str | bytes | int | float


class Partition:
    """Every call of a process to the server goes through here.

    Attributes:
        keys: Names of all keys.
        link: The shared connection.
        url: The server, for connections that must block.
    """

    def __init__(self, url: str, *, prefix: str, retry_s: float) -> None:
        self.url = url
        self.keys = Keys.of(prefix)
        self.link = Link(url)
        self._retry_s = retry_s

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
        """Close the shared connection."""
        await self.link.close()

    async def call(self, *command: Arg, retry_s: float | None = None) -> Any:
        """Send a command that may safely be sent again, until it is answered.

        Args:
            command: Name and arguments.
            retry_s: How long to go on while the server is away; None for the setting.

        Raises:
            ServerUnavailableError: It stayed away for that long.
            ServerUnsuitableError: It refuses the command.
        """
        return await self._retry(command, None, retry_s)

    async def transition(
        self, name: str, request_id: str, *args: Arg, retry_s: float | None = None
    ) -> list[Any]:
        """Carry out a Lua script, again with the same arguments after a lost reply.

        Args:
            name: The script.
            request_id: What the script recognises the request by; for error texts.
            args: ARGV, as the header of the script says.
            retry_s: How long to go on while the server is away; None for the setting.

        Raises:
            SessionOutcomeUnknownError: It was sent, and no reply came in that time.
            ServerUnavailableError: It could not be sent in that time.
            ServerUnsuitableError: The server refuses the script (out of memory, say).
        """
        script = load(name)
        assert len(args) >= script.arg_count_min - 1, f"{name} takes {script.arg_count_min} ARGV"
        command = ("EVALSHA", script.sha, 1, self.keys.root, *args)
        try:
            reply = await self._retry(command, script, retry_s)
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

    async def _retry(
        self, command: tuple[Arg, ...], script: Script | None, retry_s: float | None
    ) -> Any:
        clock = asyncio.get_running_loop().time
        deadline = clock() + (self._retry_s if retry_s is None else retry_s)
        delay = 0.02
        sent = False
        while True:
            try:
                return await self._once(command, script)
            except (ServerUnavailableError, BusyLoadingError, ReadOnlyError) as error:
                sent = sent or getattr(error, "sent", False)
                if clock() >= deadline:
                    raise ServerUnavailableError(_absence(error), sent=sent) from error
            except ResponseError as error:
                raise refused(error) from error
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 (jitter)
            delay = min(delay * 2, RETRY_DELAY_MAX_S)

    async def _once(self, command: tuple[Arg, ...], script: Script | None) -> Any:
        try:
            return await self.link.call(*command)
        except NoScriptError:
            assert script is not None
            return await self.link.call("EVAL", script.source, *command[2:])


def _absence(error: Exception) -> str:
    if isinstance(error, ReadOnlyError):
        return "the Redis server is a read-only replica; set RUNLANE_REDIS_URL to its master"
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
