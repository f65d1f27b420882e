"""How many jobs a worker process completes in a second, and what one costs.

All jobs wait in the queue before the workers start, which then begin together. The rate is taken
between two readings of the queue's length on the server, which both systems shorten when a job
has ended: the first at which something has ended, and the first at which everything has. Workers
of both systems run on uvloop with the same number of slots, informational logs off, results
kept, against an append-only server that nobody listens to.

- A job of arq is a function that does nothing. With its defaults, arq takes no more than 5 times
  its slots out of the queue at each poll, twice a second, which limits it before the processor
  does; polling every 10 ms lifts that limit.
- A run of runlane has a session of its own and an agent whose model is an adapter inside the
  process that yields one complete message at once. It writes the four records of every run and
  publishes its events; the bench checks that all records are there.

- `completed_by_<n>_processes_per_s`: all worker processes together.
- `worker_cpu_us_per_job`, `server_cpu_us_per_job`: CPU time of the one worker process and of
  the server in that time.
- `submitted_per_s`, `submit_cpu_us_per_job`: the filling of the queue by one producer process
  with 50 calls under way, through each system's public client, and its CPU time.

Shown are medians over the rounds. Of rates more is better, of CPU time less; a ratio says how
many times better runlane is.
"""

import asyncio
import time
from typing import Final

from msgspec import Struct

from bench.lab import BenchError, Lab, cpu_s, lab
from bench.report import Figures, Report, compare, machine, medians
from bench.systems.runlane_fleet import Runlane
from bench.systems.stock_arq import StockArq
from bench.worker import AnySystem

_SLOTS: Final = 100
_CALLS_IN_FLIGHT: Final = 50
_READING_S: Final = 0.01


class Size(Struct, frozen=True, kw_only=True):
    """How much is measured.

    Attributes:
        rounds: How often each system is measured, in turn.
        runs: Runs of runlane in each measurement.
        arq_jobs: Jobs of arq in each measurement.
        processes: Numbers of worker processes.
    """

    rounds: int
    runs: int
    arq_jobs: int
    processes: tuple[int, ...] = (1, 2)


SHORT: Final = Size(rounds=3, runs=6000, arq_jobs=3000)
FULL: Final = Size(rounds=7, runs=20_000, arq_jobs=10_000)


async def run(size: Size = SHORT) -> Report:
    """Measure both systems in turn, round by round."""
    started_on = machine()
    contestants: dict[str, tuple[AnySystem, int]] = {
        "runlane": (Runlane(), size.runs),
        "arq": (StockArq(), size.arq_jobs),
        "arq_poll_0.01": (StockArq(poll_delay_s=0.01), size.arq_jobs),
    }
    rounds: dict[str, list[Figures]] = {name: [] for name in contestants}
    for _ in range(size.rounds):
        figures: dict[str, Figures] = {name: {} for name in contestants}
        for processes in size.processes:
            for name, (system, jobs) in contestants.items():
                figures[name] |= await _measure(system, jobs, processes)
        for name, found in figures.items():
            rounds[name].append(found)
    peers = {name: medians(found) for name, found in rounds.items()}
    ours = peers.pop("runlane")
    return Report(
        name="throughput",
        machine=started_on,
        figures=ours,
        peers=peers,
        ratios=compare(
            ours,
            peers,
            more=[name for name in ours if name.endswith("_per_s")],
            less=[name for name in ours if name.endswith("_us_per_job")],
        ),
    )


async def _measure(system: AnySystem, jobs: int, processes: int) -> Figures:
    async with lab(system) as here:
        filling = await _fill(here, jobs)
        serving = await _serve(here, jobs, processes)
        if await here.producer.ended() != jobs:
            raise BenchError(f"not every one of {jobs} jobs has left all that it should")
    by = f"{processes}_process{'es' if processes > 1 else ''}"
    figures = {f"completed_by_{by}_per_s": serving.pop("completed_per_s")}
    return figures if processes > 1 else {**figures, **serving, **filling}


async def _fill(here: Lab, jobs: int) -> Figures:
    began, cpu_began = time.perf_counter(), time.process_time()
    await here.enqueue_all(jobs, in_flight=_CALLS_IN_FLIGHT)
    return {
        "submitted_per_s": jobs / (time.perf_counter() - began),
        "submit_cpu_us_per_job": (time.process_time() - cpu_began) / jobs * 1e6,
    }


async def _serve(here: Lab, jobs: int, processes: int) -> Figures:
    await here.start_workers(processes, slots=_SLOTS)
    left = jobs
    while left == jobs:
        left = await _reading(here)
    first = _Clock.read(here)
    unfinished = left
    while unfinished:
        unfinished = await _reading(here)
    last = _Clock.read(here)
    if not left:
        raise BenchError("all jobs ended within one reading of the queue: take more")
    return {
        "completed_per_s": left / (last.at_s - first.at_s),
        "worker_cpu_us_per_job": (last.workers_cpu_s - first.workers_cpu_s) / left * 1e6,
        "server_cpu_us_per_job": (last.server_cpu_s - first.server_cpu_s) / left * 1e6,
    }


async def _reading(here: Lab) -> int:
    here.check_workers("all jobs to end")
    await asyncio.sleep(_READING_S)
    return await here.producer.unfinished()


class _Clock(Struct, frozen=True):
    """The time, and what processes have taken of it."""

    at_s: float
    workers_cpu_s: float
    server_cpu_s: float

    @classmethod
    def read(cls, here: Lab) -> "_Clock":
        return cls(time.perf_counter(), here.workers_cpu_s(), cpu_s(here.server.pid))
