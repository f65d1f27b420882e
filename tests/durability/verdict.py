"""What became of the answers that a load has got.

`python -m tests.durability.verdict URL PREFIX FILE` prints a `Verdict` as JSON.
"""

import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from tests.durability.load import Acknowledged, lost, read

from runlane.journal.partition import Partition
from runlane.producer import Client, EventKind, Settings

DEADLINE_S: Final = 60.0


class Verdict(Struct, frozen=True):
    """How many answers there were, how many were broken, and how many of those in silence."""

    acknowledged: int
    lost: int
    unnoticed: int


async def judge(url: str, prefix: str, answers: list[Acknowledged]) -> Verdict:
    """Compare answers with the journals, and follow each session from its last lost record."""
    partition = Partition(url, prefix=prefix, retry_s=DEADLINE_S)
    broken = await lost(partition, answers)
    await partition.close()
    cursors = {each.session: each.record_id for each in broken}
    settings = Settings(redis_url=url, prefix=prefix, retry_s=DEADLINE_S)
    async with await Client.connect(settings=settings) as client:
        resets = [await _is_reset(client, *each) for each in cursors.items()]
    return Verdict(len(answers), len(broken), resets.count(False))


async def _is_reset(client: Client, session: str, cursor: str) -> bool:
    async with (
        asyncio.timeout(DEADLINE_S),
        aclosing(client.session(session).events(cursor)) as all_,
    ):
        return (await anext(all_)).kind is EventKind.JOURNAL_RESET


if __name__ == "__main__":
    os.environ.clear()  # nothing of the developer's settings
    verdict = asyncio.run(judge(sys.argv[1], sys.argv[2], read(Path(sys.argv[3]))))
    sys.stdout.write(msgspec.json.encode(verdict).decode())
