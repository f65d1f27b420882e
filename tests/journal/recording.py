"""A partition that can send its last requests again, byte for byte."""

from typing import Any, Final, cast

from msgspec import Struct

from runlane.journal.lua.scripts import Script
from runlane.journal.partition import Arg, Partition

REACHED: Final[set[tuple[str, str]]] = set()
"""Script and code of every reply in this process."""


class Sent(Struct, frozen=True):
    """A script that was carried out."""

    script: Script
    command: tuple[Arg, ...]
    reply: list[Any]

    def __repr__(self) -> str:
        return f"<{self.script.name}: {self.reply[:2]}>"

    @property
    def code(self) -> str:
        return cast("bytes", self.reply[0]).decode() if self.script.codes else ""


class RecordingPartition(Partition):
    """A partition that remembers what it had carried out.

    Attributes:
        sent: The scripts.
        count: How many commands, scripts included.
    """

    sent: list[Sent]
    count: int

    def __init__(self, url: str, *, prefix: str, retry_s: float = 10) -> None:
        super().__init__(url, prefix=prefix, retry_s=retry_s)
        self.sent = []
        self.count = 0

    async def _once(self, command: tuple[Arg, ...], script: Script | None) -> Any:
        reply = await super()._once(command, script)
        self.count += 1
        if script is not None:
            self.sent.append(Sent(script, command, reply))
            REACHED.add((script.name, self.sent[-1].code))
        return reply

    async def resend(self, sent: Sent) -> list[Any]:
        return list(await self._once(sent.command, sent.script))
