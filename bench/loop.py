"""What the loop of model and tools costs, with and without a journal.

The model answers at once and the tool does nothing, so that only the loop is left. Each system
says, calls and returns the same few words; `bench/script.py` has them. Each figure is the CPU time
(`_cpu_ms`) or the time (`_wall_ms`) of one run, divided by what its name says:

- `run`: a run without tool calls.
- `turn_of_<n>`: a tool turn (a response with one call, and its result) in a run with n of them.
- `call_of_8`, `parallel_call_of_8`: a call in a run with ten tool turns of eight calls, which are
  made one after another or all at once.
- `run_<n>`: the n-th run of one session, whose transcript nobody has shortened.
- `growth_<n>_to_<m>_ratio`: how many times more CPU time the m-th takes than the n-th; 1 is flat.

Without a journal, runlane's loop works on a conversation in memory. The peers are `BaseAgent` of
EJAgent 0.6 without an event sink and `AgentLoop` of tada-core 0.7 without compaction.

`journaled_` is the same with every step on record. runlane's runs were claimed from the queue
before the clock starts, and are executed as a worker does it: checkout, all records and events, the
end; `_server_cpu_ms` is what the server takes for it, and comes on top. Its append-only file is
flushed every second. EJAgent's recorder writes its journal in files (`JsonlSessionStorage`), which
are flushed for each record; it reads the whole file for each, so that sessions of up to 200 runs
have to do. tada-core has no journal.

All of them run on uvloop, and the peers, which need Python 3.12, on the oldest one from there on
that is at hand. Shown are medians over the rounds, in which the systems take turns. Less is better;
a ratio says how many times less runlane takes. To be met are: for a tool turn without a journal 1,
beside both peers; with one 10 beside EJAgent; and no growth of a run but by what its request has to
carry.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from msgspec import Struct

from bench.lane import deployment
from bench.own_loop import Cost, InMemory, Journaled, OwnLoop, Way
from bench.peers.environment import EJAGENT_LOOP, TADA_LOOP
from bench.peers.process import Peer, Peers
from bench.report import Figures, Report, compare, machine, medians
from runlane.journal.partition import Partition

_JOURNALED: Final = "journaled_"
_FILES_RUNS_MAX: Final = 200
"""EJAgent takes several seconds for one more run of a session with 1,000."""
_FILES_SHARE: Final = 10
"""How many times fewer runs EJAgent's journal gets."""


class Case(Struct, frozen=True, kw_only=True):
    """One kind of run.

    Attributes:
        name: What one part of it is called.
        turns: Tool turns.
        calls: Calls in each.
        parallel: Whether they are made all at once.
        runs: How many make a measurement.
    """

    name: str
    turns: int
    calls: int = 1
    parallel: bool = False
    runs: int

    @property
    def parts(self) -> int:
        """What its cost is divided by."""
        return max(self.turns * self.calls, 1)


CASES: Final = (
    Case(name="run", turns=0, runs=50),
    Case(name="turn_of_10", turns=10, runs=10),
    Case(name="turn_of_100", turns=100, runs=2),
    Case(name="call_of_8", turns=10, calls=8, runs=3),
    Case(name="parallel_call_of_8", turns=10, calls=8, parallel=True, runs=3),
)


class Size(Struct, frozen=True, kw_only=True):
    """How much is measured.

    Attributes:
        rounds: How often each system is measured, in turn.
        cases: Kinds of runs.
        numbers: Which runs of a session, lowest first.
        runs: How many from each of those on.
    """

    rounds: int
    cases: tuple[Case, ...] = CASES
    numbers: tuple[int, ...] = (20, 200, 1000, 2000)
    runs: int = 25


SHORT: Final = Size(rounds=5)
FULL: Final = Size(rounds=15)


class Contestant(Protocol):
    """One system, either with a journal or without one."""

    @property
    def longest(self) -> int | None:
        """The highest number of a run that is measured; None for all."""
        ...

    async def fresh(self, *, turns: int, calls: int, parallel: bool, times: int) -> Cost:
        """Return what each of so many runs costs that begin a session of their own."""
        ...

    async def onward(self, *, number: int, times: int) -> Cost:
        """Return what each of so many runs of a session costs, from that number on."""
        ...


class _Other(Struct, frozen=True, kw_only=True):
    peer: Peer
    arguments: dict[str, bool]
    share: int = 1
    longest: int | None = None

    async def fresh(self, *, turns: int, calls: int, parallel: bool, times: int) -> Cost:
        return await self._ask("fresh", times, turns=turns, calls=calls, parallel=parallel)

    async def onward(self, *, number: int, times: int) -> Cost:
        return await self._ask("onward", times, number=number)

    async def _ask(self, do: str, times: int, **arguments: int) -> Cost:
        times = max(times // self.share, 1)
        return Cost.of(*await self.peer.ask(do, times=times, **arguments, **self.arguments))


async def run(size: Size = SHORT) -> Report:
    """Measure all systems in turn, round by round."""
    started_on = machine()
    async with Peers() as peers, deployment() as partition:
        contestants = {**await _own(partition), **await _others(peers)}
        rounds = [await _round(contestants, size) for _ in range(size.rounds)]
        absent = peers.absent
    found = {name: medians([figures[name] for figures in rounds]) for name in rounds[0]}
    ours = found.pop("runlane")
    return Report(
        name="loop",
        machine=started_on,
        figures=ours,
        peers=found,
        ratios=compare(ours, found, less=ours),
        absent=absent,
    )


async def _own(partition: Partition) -> dict[tuple[str, str], Contestant]:
    ways: dict[str, Way] = {"": InMemory(), _JOURNALED: Journaled(partition)}
    loops = {("runlane", prefix): OwnLoop(way) for prefix, way in ways.items()}
    for loop in loops.values():
        await loop.startup()
    return {**loops}


async def _others(peers: Peers) -> dict[tuple[str, str], Contestant]:
    found: dict[tuple[str, str], Contestant] = {}
    if (peer := await peers.open(EJAGENT_LOOP, "ejagent")) is not None:
        found["ejagent", ""] = _Other(peer=peer, arguments={"journaled": False})
        found["ejagent", _JOURNALED] = _Other(
            peer=peer, arguments={"journaled": True}, share=_FILES_SHARE, longest=_FILES_RUNS_MAX
        )
    if (peer := await peers.open(TADA_LOOP, "tada")) is not None:
        found["tada", ""] = _Other(peer=peer, arguments={})
    return found


async def _round(
    contestants: Mapping[tuple[str, str], Contestant], size: Size
) -> dict[str, Figures]:
    """Measure every system once in every way; return the figures of each."""
    found: dict[str, Figures] = {name: {} for name, _ in contestants}
    for case in size.cases:
        for (name, prefix), contestant in contestants.items():
            cost = await contestant.fresh(
                turns=case.turns, calls=case.calls, parallel=case.parallel, times=case.runs
            )
            found[name] |= _figures(prefix + case.name, cost.each(case.parts))
    for number in size.numbers:
        for (name, prefix), contestant in contestants.items():
            if contestant.longest is None or number <= contestant.longest:
                cost = await contestant.onward(number=number, times=size.runs)
                found[name] |= _figures(f"{prefix}run_{number}", cost)
    for name, prefix in contestants:
        found[name] |= _growth(prefix, found[name], size)
    return found


def _growth(prefix: str, figures: Figures, size: Size) -> Figures:
    first, last = size.numbers[0], size.numbers[-1]
    before = figures[f"{prefix}run_{first}_cpu_ms"]
    after = figures.get(f"{prefix}run_{last}_cpu_ms")
    return {} if after is None else {f"{prefix}growth_{first}_to_{last}_ratio": after / before}


def _figures(name: str, cost: Cost) -> Figures:
    figures = {f"{name}_cpu_ms": cost.cpu_ms, f"{name}_wall_ms": cost.wall_ms}
    if cost.server_cpu_ms is not None:
        figures[f"{name}_server_cpu_ms"] = cost.server_cpu_ms
    return figures
