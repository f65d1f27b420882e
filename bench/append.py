"""What it costs to append one record to a journal, and whether that depends on its length.

A record is one message of the model with 2 KB of text. Appends are made one at a time by one
process: the next one is sent when the one before it was answered. runlane's is the `append`
transition: it encodes and compresses the record, proves its lease and the head that it builds on,
and is heard by subscribers (there are none). XADD, to which it comes down, is the least that an
append can cost: the same 2 KB into a stream, on a connection of the same kind, without any check.
The server's append-only file is on for both, flushed every second.

- `append_p50_us`, `append_p99_us`: from the call to its answer.
- `append_server_cpu_us`: CPU time of the server for one append (`INFO cpu`).
- `round_trips_per_append`: requests that the server has read from its sockets for one append.

The peer of the other figures is the journal in files of EJAgent 0.6 (`JsonlSessionStorage`),
which reads and checks the whole file before it appends to it, and flushes it to the disk.

- `append_at_<n>_records_p50_us`: an append to a journal that has so many records already.
- `growth_<n>_to_<m>_ratio`: how many times longer it takes at m records than at n; 1 is flat.

Percentiles are taken in each round; shown are medians over the rounds. Less is better; a ratio
says how many times better runlane is. To be met are: 0.4 or more beside XADD, which is at most 2.5
times its latency; one round trip; and a growth between 0.8 and 1.2.
"""

import random
import time
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from bench.conversation import text
from bench.lab import BenchError
from bench.lane import AGENT, Writer, ask, deployment, server_cpu_s, take
from bench.peers.environment import EJAGENT
from bench.peers.process import Peer, Peers
from bench.report import Figures, Report, compare, machine, medians, percentile
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.wire.messages import AssistantMessage, UserMessage
from runlane.journal.wire.records import MessageAppended, RunStarted

Call = Callable[[], Awaitable[object]]

_PAYLOAD_BYTES: Final = 2048
_FILL_AT_ONCE: Final = 100
_TEXT: Final = text(_PAYLOAD_BYTES, random.Random(1))


class Size(Struct, frozen=True, kw_only=True):
    """How much is measured.

    Attributes:
        rounds: Rounds; the percentiles of each are taken over all its blocks.
        blocks: Blocks in a round; in each, all kinds of appends take turns.
        appends: Appends of runlane and of XADD in a block.
        appends_at_length: Appends of runlane at each length in a block.
        file_appends: Appends of EJAgent at each length in a round.
        lengths: Records that a journal has when it is appended to, fewest first.
    """

    rounds: int
    blocks: int
    appends: int = 30
    appends_at_length: int = 10
    file_appends: int = 3
    lengths: tuple[int, ...] = (100, 1000, 3000)


SHORT: Final = Size(rounds=7, blocks=10)
FULL: Final = Size(rounds=15, blocks=30, file_appends=10)


async def run(size: Size = SHORT) -> Report:
    """Measure all systems in turn, round by round."""
    started_on = machine()
    rounds: dict[str, list[Figures]] = {"runlane": [], "xadd": [], "ejagent_jsonl": []}
    async with Peers() as peers, deployment() as partition:
        files = await peers.open(EJAGENT, "ejagent_jsonl")
        if files is not None:
            for length in size.lengths:
                await files.ask("fill_messages", session=str(length), records=length, text=_TEXT)
        for number in range(size.rounds):
            ours, xadd = await _round(partition, number, size)
            rounds["runlane"].append(ours)
            rounds["xadd"].append(xadd)
            if files is not None:
                rounds["ejagent_jsonl"].append(await _files_at_lengths(files, size))
    found = {name: medians(figures) for name, figures in rounds.items() if figures}
    for name in found.keys() - {"xadd"}:
        found[name] |= _growth(found[name], size)
    figures = found.pop("runlane")
    return Report(
        name="append",
        machine=started_on,
        figures=figures,
        peers=found,
        ratios=compare(figures, found, less=figures),
        absent=peers.absent,
    )


async def _round(partition: Partition, number: int, size: Size) -> tuple[Figures, Figures]:
    """Return the figures of runlane and of XADD."""
    xadd = Series(partition, _xadd(partition), size.appends)
    ours = Series(partition, _append(await _journal(partition, f"any-{number}", 100)), size.appends)
    at_lengths = {
        length: Series(
            partition,
            _append(await _journal(partition, f"{length}-{number}", length)),
            size.appends_at_length,
        )
        for length in size.lengths
    }
    for _ in range(size.blocks):
        for series in (xadd, ours, *at_lengths.values()):
            await series.block()
    lengths = {_at(length): percentile(s.took_us, 50) for length, s in at_lengths.items()}
    return ours.figures() | lengths, xadd.figures()


class Series:
    """Calls of one kind, made in blocks among others'."""

    def __init__(self, partition: Partition, call: Call, times: int) -> None:
        self.took_us: list[float] = []
        self._partition = partition
        self._call = call
        self._times = times
        self._cpu_s = 0.0
        self._reads = 0

    async def block(self) -> None:
        """Make the calls of one block, after one that does not count."""
        await self._call()
        before = await _ServerClock.read(self._partition)
        for _ in range(self._times):
            began = time.perf_counter()
            await self._call()
            self.took_us.append((time.perf_counter() - began) * 1e6)
        after = await _ServerClock.read(self._partition)
        self._cpu_s += after.cpu_s - before.cpu_s
        self._reads += after.reads - before.reads - 2

    def figures(self) -> Figures:
        """Return what came of all blocks."""
        calls = len(self.took_us)
        return {
            "append_p50_us": percentile(self.took_us, 50),
            "append_p99_us": percentile(self.took_us, 99),
            "append_server_cpu_us": self._cpu_s / calls * 1e6,
            "round_trips_per_append": self._reads / calls,
        }


async def _journal(partition: Partition, session_id: str, length: int) -> Writer:
    """Return the writer of a journal with so many records: `run_queued` and what follows it."""
    claimed = await take(partition, await ask(partition, session_id, "bench"))
    lease = claimed.lease
    writer = Writer(partition, lease)
    start = RunStarted(
        run_id=lease.run_id,
        attempt=lease.attempt,
        agent=AGENT,
        version="1",
        worker_id="bench",
        message=UserMessage("bench"),
    )
    await writer.append(start)
    messages = length - 2
    while messages > 0:
        await writer.append(*[_message(lease)] * min(messages, _FILL_AT_ONCE))
        messages -= _FILL_AT_ONCE
    records = await partition.call("XLEN", partition.keys.log(session_id))
    if records != length:
        raise BenchError(f"the journal has {records} records, not {length}")
    return writer


def _message(lease: Lease) -> MessageAppended:
    message = AssistantMessage(_TEXT)
    return MessageAppended(run_id=lease.run_id, attempt=lease.attempt, turn=1, message=message)


def _append(writer: Writer) -> Call:
    return lambda: writer.append(_message(writer.lease))


def _xadd(partition: Partition) -> Call:
    return lambda: partition.link.call("XADD", "xadd", "*", "d", _TEXT)


async def _files_at_lengths(files: Peer, size: Size) -> Figures:
    figures: Figures = {}
    for length in size.lengths:
        took_s = await files.ask("append", session=str(length), times=size.file_appends)
        figures[_at(length)] = percentile(took_s, 50) * 1e6
    return figures


def _at(length: int) -> str:
    return f"append_at_{length}_records_p50_us"


def _growth(figures: Figures, size: Size) -> Figures:
    fewest, most = size.lengths[0], size.lengths[-1]
    return {f"growth_{fewest}_to_{most}_ratio": figures[_at(most)] / figures[_at(fewest)]}


class _ServerClock(Struct, frozen=True):
    """What the server has taken so far: CPU time, and requests from its sockets."""

    cpu_s: float
    reads: int

    @classmethod
    async def read(cls, partition: Partition) -> "_ServerClock":
        """The reading itself is two requests: from one to the next, reads go up by two."""
        text: bytes = await partition.call("INFO", "stats")
        fields = dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)
        return cls(cpu_s=await server_cpu_s(partition), reads=int(fields["total_reads_processed"]))
