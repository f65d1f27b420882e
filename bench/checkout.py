"""How soon a worker can carry on a session, by its length.

runlane's figure is what a worker does when a run is due, through the worker's own code: from the
sending of the claim to the first line of the model's `stream()`. It covers the claim, the reading
and decoding of the journal, the projection of the branch, and the commit of `run_started`. Each
length is measured at several places between two checkpoints, on sessions as `bench/history.py`
describes them: one checkpoint every 200 records, and the transcript compacted to its last 10 turns
after every 30, since no model reads more than fits its context. That bounds what there is to read.

- `checkout_at_<n>_records_p50_ms`: with so many records in the session, all in the server.
- `cold_checkout_at_<n>_records_p50_ms`: the same when the session has rested and all of its records
  lie in the archive, in files that this process has not read before.

The peers read what they have for the same conversation; none of them claims anything.

- `xrange_pages` reads all of runlane's records, 200 at a time, and decodes them without folding
  them: what a checkout would be without checkpoints.
- `ejagent_jsonl` is `load()` of EJAgent 0.6's journal in files, with as many records (five a turn,
  runlane has seven), and up to 3,000 of them. It has no checkpoints of its own accord.
- `langgraph_in_memory`, `langgraph_sqlite`: `get_tuple()` of LangGraph's savers for a state that
  holds the messages of as many turns: its state is the whole transcript. No history lies before it,
  which can only help them. The one in memory deserializes, and survives nothing.

Shown are medians. Less is better; a ratio says how many times sooner runlane is.
"""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct

from bench.archiving import COLD_S, archive_in, cool_down, grow_archived
from bench.history import RECORDS_PER_TURN, History
from bench.lane import AGENT, ask, carry_out, deployment, take
from bench.peers.environment import EJAGENT, LANGGRAPH
from bench.peers.process import Peer, Peers
from bench.report import Figures, Report, compare, machine, percentile
from runlane.journal.checkpoints import CHECKPOINT_RECORDS
from runlane.journal.partition import Partition
from runlane.journal.reader import read_records
from runlane.journal.wire.messages import AssistantMessage, ModelUsage
from runlane.worker import (
    Agent,
    CancellationToken,
    ModelAdapter,
    ModelContext,
    ModelResponseCompleted,
)

_FILES_MAX: Final = 3000
"""EJAgent takes the better part of a second to read so many."""
_REUSED_FROM: Final = 3000
"""A session this long is not written anew for each round; it grows from one to the next."""
_STRIDE: Final = 29
"""By how many records sessions of a length differ from round to round."""
_SAVERS: Final = ("langgraph_in_memory", "langgraph_sqlite")


class Size(Struct, frozen=True, kw_only=True):
    """How much is measured.

    Attributes:
        rounds: How often each system is measured at each length, in turn.
        checkouts: Checkouts of runlane at each length in a round.
        lengths: Records of the sessions, fewest first.
        cold_lengths: The same of sessions in the archive.
    """

    rounds: int
    checkouts: int = 3
    lengths: tuple[int, ...] = (100, 1000, 3000, 10_000, 30_000)
    cold_lengths: tuple[int, ...] = (1000, 10_000)


SHORT: Final = Size(rounds=7)
FULL: Final = Size(rounds=15, lengths=(*SHORT.lengths, 100_000))


async def run(size: Size = SHORT) -> Report:
    """Measure all systems in turn, length by length and round by round."""
    started_on = machine()
    async with Peers() as peers, deployment() as partition:
        contest = Contest(
            partition,
            files=await peers.open(EJAGENT, "ejagent_jsonl"),
            savers=await peers.open(LANGGRAPH, *_SAVERS),
        )
        for length in size.lengths:
            await contest.prepare(length)
        for number in range(size.rounds):
            for length in size.lengths:
                await contest.measure(length, number, size.checkouts)
        found = contest.figures()
        absent = peers.absent
    ours = found.pop("runlane") | await _cold(size)
    return Report(
        name="checkout",
        machine=started_on,
        figures=ours,
        peers=found,
        ratios=compare(ours, found, less=ours),
        absent=absent,
    )


async def _cold(size: Size) -> Figures:
    """Measure sessions of which the server has no record left."""
    with TemporaryDirectory(prefix="bench-archive-") as name:
        folder = Path(name)
        async with deployment(archive=archive_in(folder), cold_s=COLD_S) as partition:
            worker = Worker(partition)
            sessions = [History(partition, str(length)) for length in size.cold_lengths]
            took_s: dict[int, list[float]] = {length: [] for length in size.cold_lengths}
            for number in range(size.rounds):
                for length, history in zip(size.cold_lengths, sessions, strict=True):
                    async for _ in grow_archived(partition, history, length + _further(number)):
                        pass
                await cool_down(partition, [history.session_id for history in sessions])
                for length, history in zip(size.cold_lengths, sessions, strict=True):
                    partition.archive = archive_in(folder)
                    took_s[length].append(await worker.check_out(history.session_id))
                    await history.catch_up()
    return {
        f"cold_checkout_at_{length}_records_p50_ms": percentile(took, 50) * 1e3
        for length, took in took_s.items()
    }


def _further(number: int) -> int:
    """Return how many records longer sessions are in a round: checkpoints are elsewhere then."""
    return number * _STRIDE % CHECKPOINT_RECORDS


class Contest:
    """All systems with their sessions, and how long they took."""

    def __init__(self, partition: Partition, *, files: Peer | None, savers: Peer | None) -> None:
        self._partition = partition
        self._files = files
        self._savers = savers
        self._worker = Worker(partition)
        self._sessions: dict[int, History] = {}
        self._took_s: dict[str, dict[int, list[float]]] = {}

    async def prepare(self, length: int) -> None:
        """Let the peers have their sessions; those of runlane come when they are measured."""
        if self._files is not None and length <= _FILES_MAX:
            await self._files.ask("fill_conversation", session=str(length), records=length)
        if self._savers is not None:
            for name in _SAVERS:
                turns = length // RECORDS_PER_TURN
                await self._savers.ask("fill", saver=name, thread=str(length), turns=turns)

    async def measure(self, length: int, number: int, checkouts: int) -> None:
        """Measure every system once at a length, and runlane so many times."""
        history = await self._session(length, number)
        for _ in range(checkouts):
            self._note("runlane", length, await self._worker.check_out(history.session_id))
        self._note("xrange_pages", length, await self._read_all(history.session_id))
        await history.catch_up()
        if self._files is not None and length <= _FILES_MAX:
            for took in await self._files.ask("load", session=str(length), times=1):
                self._note("ejagent_jsonl", length, took)
        if self._savers is not None:
            for name in _SAVERS:
                for took in await self._savers.ask("get", saver=name, thread=str(length), times=1):
                    self._note(name, length, took)

    def figures(self) -> dict[str, Figures]:
        """Return the medians, by system."""
        return {
            name: {
                f"checkout_at_{length}_records_p50_ms": percentile(took_s, 50) * 1e3
                for length, took_s in by_length.items()
            }
            for name, by_length in self._took_s.items()
        }

    async def _session(self, length: int, number: int) -> History:
        """Return a session of about that length, somewhere between two checkpoints."""
        history = self._sessions.get(length)
        if history is None or length < _REUSED_FROM:
            history = History(self._partition, f"{length}-{number}")
            self._sessions[length] = history
        await history.grow(length + (_further(number) if length > CHECKPOINT_RECORDS else 0))
        return history

    async def _read_all(self, session_id: str) -> float:
        began = time.perf_counter()
        async for _ in read_records(self._partition, session_id):
            pass
        return time.perf_counter() - began

    def _note(self, name: str, length: int, took_s: float) -> None:
        self._took_s.setdefault(name, {}).setdefault(length, []).append(took_s)


class Worker:
    """Carries one run on after another through the worker's own code."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._model = MarkingModel()
        self._agent = Agent(AGENT, self._model)

    async def check_out(self, session_id: str) -> float:
        """Return the seconds from the sending of a claim to the beginning of the model's turn."""
        run_id = await ask(self._partition, session_id, "Go on.")
        began = time.perf_counter()
        claimed = await take(self._partition, run_id)
        await carry_out(self._partition, claimed, self._agent)
        return self._model.asked_at - began


class MarkingModel(ModelAdapter):
    """Answers at once, and knows when it was asked."""

    name = "marking"

    def __init__(self) -> None:
        self.asked_at = 0.0

    async def stream(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AsyncIterator[ModelResponseCompleted]:
        self.asked_at = time.perf_counter()
        yield ModelResponseCompleted(AssistantMessage("Done."), ModelUsage(8, 1))
