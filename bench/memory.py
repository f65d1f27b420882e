"""What a long session takes of the server's memory, and what a conversation sends to it.

The session has 10,000 records, written as workers write them; `bench/history.py` describes it. In a
turn, which leaves seven records, the user says 300 bytes, the model calls a tool with 200 bytes of
words and 80 of arguments, the tool returns 2,000 to 3,000 bytes and the model answers with 800. A
checkpoint is written every 200 records, and the transcript compacted every 30 turns.

What is measured is the growth of the server's used memory, without its buffers for clients and for
the append-only file: keys of every kind, for runs and for stock arq tools too.

- `payload_bytes`: what was said in all turns; `content_bytes`: the content of all records,
  checkpoints included, before compression.
- `uncompressed_bytes`: the whole session in the server, with compression off; and how many times
  the content and the payload that is.
- `whole_bytes`: the same with compression, as it is without an archive.
- `archived_bytes`: with an archiver, which looks every ten turns and moves what is older than the
  last checkpoint to files; `archived_max_bytes` is the most that was in the server at any time,
  `archive_files_bytes` the size of the files.
- `cold_bytes`: after the session has rested for as long as `RUNLANE_COLD_S` says (1 s here), so
  that all of its records have gone there.

Of the last three, `MEMORY USAGE` of all keys says what they are for: records, what is known of
ended runs (for 30 days), the mirror for stock arq's tools (for an hour), and the rest.

LangGraph's savers hold the first 100 turns of the same conversation, through a graph of four
supersteps a turn that saves each of them; its state is the transcript, and none of it is compacted.

- `turns_100_sent_bytes`: what was sent to the store: runlane's server has read it from its sockets,
  LangGraph's serializer has handed it to the saver.
- `turns_100_stored_bytes`: what the store has grown by: used memory of the server, all that the
  saver in memory keeps, the file of SQLite.

Less is better; a ratio says how many times less runlane takes. To be met are: 1.5 for uncompressed
bytes per byte of content, and 2 MB with an archiver.
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

from msgspec import Struct

from bench.archiving import COLD_S, archive_due, archive_in, cool_down, grow_archived
from bench.history import History
from bench.lane import deployment
from bench.peers.environment import LANGGRAPH
from bench.peers.process import Peers
from bench.report import Figures, Report, compare, machine
from runlane.journal.partition import Partition
from runlane.journal.wire import codec

_SAVERS: Final = ("langgraph_in_memory", "langgraph_sqlite")
_SESSION: Final = "bench"
_WARM_UP: Final = "warm-up"
_PAGE: Final = 500


class Size(Struct, frozen=True, kw_only=True):
    """How much is measured.

    Attributes:
        records: Records of the long session.
        turns: Turns of the conversation that LangGraph holds too.
    """

    records: int = 10_000
    turns: int = 100


SHORT: Final = Size()
FULL: Final = SHORT


async def run(size: Size = SHORT) -> Report:
    """Measure runlane's long sessions, then the conversation in each system."""
    started_on = machine()
    figures = await _uncompressed(size) | await _whole(size) | await _archived(size)
    figures |= await _conversation(size)
    found: dict[str, Figures] = {}
    async with Peers() as peers:
        savers = await peers.open(LANGGRAPH, *_SAVERS)
        if savers is not None:
            for name in _SAVERS:
                bytes_of = await savers.ask("converse", saver=name, turns=size.turns)
                found[name] = _named(bytes_of, size)
        absent = peers.absent
    return Report(
        name="memory",
        machine=started_on,
        figures=figures,
        peers=found,
        ratios=compare(figures, found, less=figures),
        absent=absent,
    )


async def _uncompressed(size: Size) -> Figures:
    with patch.object(codec, "COMPRESS_ABOVE_BYTES", sys.maxsize):
        async with deployment() as partition:
            history, grown = await _write(partition, size.records)
            content = await _content_bytes(partition)
    return {
        "payload_bytes": history.payload_bytes,
        "content_bytes": content,
        "uncompressed_bytes": grown,
        "uncompressed_per_content_ratio": grown / content,
        "uncompressed_per_payload_ratio": grown / history.payload_bytes,
    }


async def _whole(size: Size) -> Figures:
    async with deployment() as partition:
        _, grown = await _write(partition, size.records)
        return {"whole_bytes": grown, **await _by_kind(partition, "whole")}


async def _archived(size: Size) -> Figures:
    with TemporaryDirectory(prefix="bench-archive-") as name:
        folder = Path(name)
        async with deployment(archive=archive_in(folder), cold_s=COLD_S) as partition:
            await _warm_up(partition)
            await cool_down(partition, [_WARM_UP])
            before = await _used_bytes(partition)
            history = History(partition, _SESSION)
            most = 0
            async for _ in grow_archived(partition, history, size.records):
                most = max(most, await _used_bytes(partition) - before)
            await archive_due(partition)
            figures: Figures = {
                "archived_bytes": await _used_bytes(partition) - before,
                "archived_max_bytes": most,
                **await _by_kind(partition, "archived"),
            }
            await cool_down(partition, [_SESSION])
            return figures | {
                "archive_files_bytes": _files_bytes(folder),
                "cold_bytes": await _used_bytes(partition) - before,
                **await _by_kind(partition, "cold"),
            }


async def _conversation(size: Size) -> Figures:
    """Return what runlane's server was sent for the conversation, and what it holds of it."""
    async with deployment() as partition:
        await _warm_up(partition)
        sent, stored = await _received_bytes(partition), await _used_bytes(partition)
        history = History(partition, _SESSION)
        for _ in range(size.turns):
            await history.write_turn()
        bytes_of = {
            "sent_bytes": await _received_bytes(partition) - sent,
            "stored_bytes": await _used_bytes(partition) - stored,
        }
    return _named(bytes_of, size)


def _named(bytes_of: dict[str, int], size: Size) -> Figures:
    return {f"turns_{size.turns}_{what}": value for what, value in bytes_of.items()}


async def _write(partition: Partition, records: int) -> tuple[History, int]:
    """Write a session; return it, and by how much used memory has grown."""
    await _warm_up(partition)
    before = await _used_bytes(partition)
    history = History(partition, _SESSION)
    await history.grow(records)
    return history, await _used_bytes(partition) - before


async def _warm_up(partition: Partition) -> None:
    """Let the server have all scripts."""
    await History(partition, _WARM_UP).write_turn()


def _files_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def _by_kind(partition: Partition, prefix: str) -> Figures:
    """Return `MEMORY USAGE` of all keys by what they are for."""
    kinds: Counter[str] = Counter(records=0, runs=0, arq_mirror=0, other=0)
    cursor = b"0"
    while True:
        cursor, keys = await partition.call("SCAN", cursor, "COUNT", _PAGE)
        sizes = await asyncio.gather(
            *(partition.call("MEMORY", "USAGE", key, "SAMPLES", 0) for key in keys)
        )
        for key, size in zip(keys, sizes, strict=True):
            kinds[_kind(partition, key.decode())] += size or 0
        if cursor == b"0":
            break
    return {f"{prefix}_{kind}_bytes": size for kind, size in kinds.items()}


def _kind(partition: Partition, key: str) -> str:
    if key.startswith("arq:"):
        return "arq_mirror"
    if key.startswith(partition.keys.log("")):
        return "records"
    return "runs" if key.startswith(partition.keys.run("")) else "other"


async def _content_bytes(partition: Partition) -> int:
    """Return the size of the content of all records, as it is stored."""
    total, start = 0, "-"
    while page := await _page(partition, start):
        total += sum(len(fields[fields.index(b"d") + 1]) for _, fields in page)
        start = f"({page[-1][0].decode()}"
    return total


async def _page(partition: Partition, start: str) -> list[Any]:
    log = partition.keys.log(_SESSION)
    page: list[Any] = await partition.call("XRANGE", log, start, "+", "COUNT", 200)
    return page


async def _used_bytes(partition: Partition) -> int:
    fields = await _info(partition, "memory")
    buffers = int(fields["mem_clients_normal"]) + int(fields["mem_aof_buffer"])
    return int(fields["used_memory"]) - buffers


async def _received_bytes(partition: Partition) -> int:
    return int((await _info(partition, "stats"))["total_net_input_bytes"])


async def _info(partition: Partition, section: str) -> dict[str, str]:
    lines = (await partition.call("INFO", section)).decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)
