"""How many of a fleet's slots long jobs can fill.

More jobs than slots are asked for, none of which ends, and the bench counts how many have begun
once no more have for a few seconds. All of them run at the same time, since none ends. The fleet
has 300 slots in three shapes: one worker process with 300, six with 50, fifteen with 20.

- `running_<workers>x<slots>_jobs`: jobs that run at once. More is better, and the number of
  slots is what can be had; a ratio says how many times more runlane runs.

A worker of arq reads only the first `max(5 * max_jobs, 100)` jobs of the queue, and those that
run are still in it: that many jobs are the most that its fleet runs at once, however many
workers there are. A single large worker does not meet that limit.
"""

import asyncio
import time
from typing import Final

from msgspec import Struct

from bench.lab import lab
from bench.report import Figures, Report, compare, machine
from bench.systems.runlane_fleet import Runlane
from bench.systems.stock_arq import StockArq
from bench.worker import AnySystem

_CALLS_IN_FLIGHT: Final = 20
_WATCH_S: Final = 0.1


class Shape(Struct, frozen=True):
    """A fleet.

    Attributes:
        workers: Worker processes.
        slots: Slots of each.
    """

    workers: int
    slots: int

    @property
    def figure(self) -> str:
        """The name of what is counted."""
        return f"running_{self.workers}x{self.slots}_jobs"


class Size(Struct, frozen=True, kw_only=True):
    """How much is measured.

    Attributes:
        shapes: The fleets.
        jobs: Jobs asked for.
        still_s: The count is final when it has not grown for so long.
    """

    shapes: tuple[Shape, ...] = (Shape(1, 300), Shape(6, 50), Shape(15, 20))
    jobs: int = 400
    still_s: float = 3


SHORT: Final = Size()
FULL: Final = Size(still_s=10)


async def run(size: Size = SHORT) -> Report:
    """Count for both systems in turn, shape by shape."""
    started_on = machine()
    figures: Figures = {}
    peer: Figures = {}
    for shape in size.shapes:
        figures[shape.figure] = await _count(Runlane(), shape, size)
        peer[shape.figure] = await _count(StockArq(), shape, size)
    peers = {"arq": peer}
    return Report(
        name="slots",
        machine=started_on,
        figures=figures,
        peers=peers,
        ratios=compare(figures, peers, more=figures),
    )


async def _count(system: AnySystem, shape: Shape, size: Size) -> int:
    async with lab(system) as here:
        await here.start_workers(shape.workers, slots=shape.slots, hang=True)
        await here.enqueue_all(size.jobs, in_flight=_CALLS_IN_FLIGHT)
        count, grown_at = 0, time.monotonic()
        while time.monotonic() - grown_at < size.still_s:
            await asyncio.sleep(_WATCH_S)
            running = len({mark.number for mark in here.marks.jobs()})
            if running > count:
                count, grown_at = running, time.monotonic()
        return count
