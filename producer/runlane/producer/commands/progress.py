"""A bar that shows how far a long command has got, on a terminal only."""

from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LONG: Final = 1000
"""Fewer records are done before anybody could read the bar."""


class Bar:
    """Shown on standard error within the `with` block."""

    def __init__(self, what: str) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(what, visible=False)

    def __call__(self, done: int, total: int) -> None:
        """Show how many records are done, and of how many."""
        self._progress.update(self._task, completed=done, total=total, visible=total >= LONG)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()
