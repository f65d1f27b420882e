"""How soon a job runs again when the worker that runs it is killed.

Two workers are up, one job runs. The one that marked its beginning gets SIGKILL at a random
moment, the other one is idle; the clock stops when the job begins there (see `start` for what
that means). All trials run at the same time, each with a server of its own.

- `takeover_p50_s`, `takeover_max_s`: with the default lease.
- `takeover_lease_2s_p50_s`, `takeover_lease_2s_max_s`: with a lease of 2 s.

A worker renews its leases every third of a lease, so that a takeover takes between two thirds
and the whole of one, and what it needs to begin. arq's job is blocked for its `job_timeout`,
which any job must be given in advance, and 10 s; the name of the peer says which `job_timeout`
was taken (arq's default is 300 s). It is one trial, since that wait hardly varies. Less is
better; both ratios are to arq's one figure, and say how many times sooner runlane is.
"""

import asyncio
import random
import time
from typing import Final

from msgspec import Struct

from bench.lab import lab
from bench.report import Figures, Report, machine, percentile
from bench.systems.runlane_fleet import Runlane
from bench.systems.stock_arq import StockArq
from bench.worker import AnySystem

_SHORT_LEASE_MS: Final = 2000
_TIMEOUT_S: Final = 400.0


class Size(Struct, frozen=True, kw_only=True):
    """How much is measured.

    Attributes:
        trials: Workers of runlane to kill, for each lease.
        job_timeouts_s: Of arq's jobs; one worker is killed for each.
        lease_ms: The longer lease of runlane; None for its default.
    """

    trials: int
    job_timeouts_s: tuple[int, ...]
    lease_ms: int | None = None


SHORT: Final = Size(trials=5, job_timeouts_s=(60,))
FULL: Final = Size(trials=15, job_timeouts_s=(60, 300))


async def run(size: Size = SHORT) -> Report:
    """Run all trials side by side."""
    started_on = machine()
    ours = {
        "takeover": Runlane(lease_ms=size.lease_ms),
        "takeover_lease_2s": Runlane(lease_ms=_SHORT_LEASE_MS),
    }
    arq = {
        f"arq_job_timeout_{seconds}s": StockArq(job_timeout_s=seconds)
        for seconds in size.job_timeouts_s
    }
    trials: list[tuple[str, AnySystem]] = [*ours.items()] * size.trials
    trials += arq.items()
    all_up = asyncio.Barrier(len(trials))
    took_s = await asyncio.gather(*(_trial(system, all_up) for _, system in trials))
    by_name: dict[str, list[float]] = {name: [] for name in (*ours, *arq)}
    for (name, _), seconds in zip(trials, took_s, strict=True):
        by_name[name].append(seconds)
    figures: Figures = {}
    for name in ours:
        figures[f"{name}_p50_s"] = percentile(by_name[name], 50)
        figures[f"{name}_max_s"] = max(by_name[name])
    peers = {name: {"takeover_p50_s": percentile(by_name[name], 50)} for name in arq}
    return Report(
        name="takeover",
        machine=started_on,
        figures=figures,
        peers=peers,
        ratios={
            f"{name}_p50_s/{peer}": theirs["takeover_p50_s"] / figures[f"{name}_p50_s"]
            for peer, theirs in peers.items()
            for name in ours
        },
    )


async def _trial(system: AnySystem, all_up: asyncio.Barrier) -> float:
    """Return the seconds from the kill of the busy worker to the second beginning of its job."""
    async with lab(system) as here:
        await here.start_workers(2, slots=10, hang=True)
        await all_up.wait()
        await here.producer.enqueue(0)
        first = await here.mark_of(0)
        renewal_s = system.lease_s / 3 if isinstance(system, Runlane) else 0
        await asyncio.sleep(random.uniform(0, renewal_s))
        killed_ns = time.time_ns()
        here.kill(first.pid)
        second = await here.mark_of(0, begun=2, timeout_s=_TIMEOUT_S)
        return (second.at_ns - killed_ns) / 1e9
