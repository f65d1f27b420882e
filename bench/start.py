"""How soon a job begins on an idle worker.

One worker process, one job at a time: the next is asked for when the one before it has begun
and a random pause has passed, 10 ms and up to the polling interval of that arq on top, so that it
meets any moment of it (runlane does not poll: up to 10 ms). A job begins at the first line of
its own code: for arq that of the function, for runlane the model's `stream()`, which it reaches
only after the run was claimed, its session checked out and its `run_started` record committed.

- `start_p50_ms`, `start_p99_ms`: from just before the enqueuing call in the producer's process
  to that line in the worker's, both by the clock of the one host.
- `enqueue_p50_ms`: the enqueuing call itself.
- `run_started_record_p50_ms`: from the same moment to the commit of `run_started`, by the time
  that the server wrote into it; both ends are whole milliseconds. Only runlane has it.

Percentiles are taken in each round (`p99` of few jobs is their slowest); shown are medians over
the rounds. Less is better; a ratio says how many times sooner runlane is.
"""

import asyncio
import random
import time
from typing import Final

from msgspec import Struct

from bench.lab import Lab, lab
from bench.report import Figures, Report, compare, machine, medians, percentile
from bench.systems.runlane_fleet import Runlane, RunlaneProducer
from bench.systems.stock_arq import StockArq
from bench.worker import AnySystem

_PAUSE_MIN_S: Final = 0.01
_WARM_UP_JOBS: Final = 5


class Contestant(Struct, frozen=True):
    """A system, and how it is asked.

    Attributes:
        system: The system.
        jobs: How many in a round.
        pause_s: Longest pause between jobs.
    """

    system: AnySystem
    jobs: int
    pause_s: float


class Size(Struct, frozen=True, kw_only=True):
    """How much is measured.

    Attributes:
        rounds: How often each system is measured, in turn.
        jobs: Jobs in a round; also with arq polling every 10 ms.
        jobs_of_default_arq: Jobs in a round of arq with its default polling interval.
    """

    rounds: int
    jobs: int
    jobs_of_default_arq: int


SHORT: Final = Size(rounds=3, jobs=150, jobs_of_default_arq=20)
FULL: Final = Size(rounds=5, jobs=1000, jobs_of_default_arq=100)


async def run(size: Size = SHORT) -> Report:
    """Measure all contestants in turn, round by round."""
    started_on = machine()
    arq, eager_arq = StockArq(), StockArq(poll_delay_s=0.01)
    contestants = {
        "runlane": Contestant(Runlane(), size.jobs, eager_arq.poll_delay_s),
        "arq": Contestant(arq, size.jobs_of_default_arq, arq.poll_delay_s),
        "arq_poll_0.01": Contestant(eager_arq, size.jobs, eager_arq.poll_delay_s),
    }
    rounds: dict[str, list[Figures]] = {name: [] for name in contestants}
    for _ in range(size.rounds):
        for name, contestant in contestants.items():
            rounds[name].append(await _measure(contestant))
    peers = {name: medians(figures) for name, figures in rounds.items()}
    figures = peers.pop("runlane")
    names = ("start_p50_ms", "start_p99_ms", "enqueue_p50_ms")
    return Report(
        name="start",
        machine=started_on,
        figures=figures,
        peers=peers,
        ratios=compare(figures, peers, less=names),
    )


async def _measure(contestant: Contestant) -> Figures:
    async with lab(contestant.system) as here:
        await here.start_workers(1, slots=100)
        sent: dict[int, int] = {}
        enqueue_ms: list[float] = []
        start_ms: list[float] = []
        for number in range(_WARM_UP_JOBS + contestant.jobs):
            await asyncio.sleep(random.uniform(_PAUSE_MIN_S, _PAUSE_MIN_S + contestant.pause_s))
            sent_ns = time.time_ns()
            await here.producer.enqueue(number)
            done_ns = time.time_ns()
            mark = await here.mark_of(number)
            if number >= _WARM_UP_JOBS:
                sent[number] = sent_ns
                enqueue_ms.append((done_ns - sent_ns) / 1e6)
                start_ms.append((mark.at_ns - sent_ns) / 1e6)
        return {
            "start_p50_ms": percentile(start_ms, 50),
            "start_p99_ms": percentile(start_ms, 99),
            "enqueue_p50_ms": percentile(enqueue_ms, 50),
            **await _record_figures(here, sent),
        }


async def _record_figures(here: Lab, sent: dict[int, int]) -> Figures:
    if not isinstance(here.producer, RunlaneProducer):
        return {}
    committed_ms = await here.producer.started_at_ms()
    delays = [committed_ms[number] - sent_ns // 1_000_000 for number, sent_ns in sent.items()]
    return {"run_started_record_p50_ms": percentile(delays, 50)}
