"""How the demo shows what happens: a live table on a terminal, lines elsewhere."""

import time
from collections.abc import Sequence
from typing import Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from runlane.worker.demo.fleet import WorkerProcess, WorkerState
from runlane.worker.demo.observed import Observed

_RUNS_PER_LINE: Final = 10
_STYLE_OF: Final = {
    WorkerState.STARTING: "yellow",
    WorkerState.SERVING: "green",
    WorkerState.KILLED: "bold red",
    WorkerState.DRAINING: "magenta",
    WorkerState.DRAINED: "blue",
    WorkerState.DIED: "bold red",
}


class View:
    """Plain lines: what happened, and how far it is after every ten runs; a context manager.

    Args:
        console: Where they are printed.
        observed: What is shown.
    """

    def __init__(self, console: Console, observed: Observed) -> None:
        self.console = console
        self.observed = observed
        self._began_at = time.monotonic()
        self._ended_shown = 0

    def say(self, text: str) -> None:
        """Show something that happened."""
        seconds = time.monotonic() - self._began_at
        self.console.print(Text(f"{seconds:5.1f} s  {text}"))

    def refresh(self) -> None:
        """Show how far it is."""
        ended = self.observed.ended_count
        if ended >= self._ended_shown + _RUNS_PER_LINE:
            self._ended_shown = ended - ended % _RUNS_PER_LINE
            self.say(self.progress)

    @property
    def progress(self) -> str:
        """How far it is, in one line."""
        seen = self.observed
        return (
            f"runs accepted {seen.accepted_count}, ended {seen.ended_count}; "
            f"events heard {seen.event_count}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class LiveView(View):
    """The same on a terminal, with the state of every worker below it.

    Args:
        console: The terminal.
        observed: What is shown.
        workers: All workers; more may join.
    """

    def __init__(
        self, console: Console, observed: Observed, workers: Sequence[WorkerProcess]
    ) -> None:
        super().__init__(console, observed)
        self._workers = workers
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def refresh(self) -> None:
        """Draw it anew."""
        table = Table("worker", "pid", "state", "runs now", box=None, padding=(0, 3, 0, 0))
        for worker in self._workers:
            held = self.observed.held_by(worker.worker_id)
            state = Text(worker.state, style=_STYLE_OF[worker.state])
            table.add_row(worker.name, str(worker.pid), state, "▪" * held)
        self._live.update(Group("", Text(self.progress), "", table), refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()


def view_on(console: Console, observed: Observed, workers: Sequence[WorkerProcess]) -> View:
    """Return the view that suits where it is printed."""
    if console.is_interactive:
        return LiveView(console, observed, workers)
    return View(console, observed)
