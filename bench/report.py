"""What a bench says: figures, its peers' figures, and ratios between them."""

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from msgspec import Struct
from rich.table import Table

from runlane.journal.server import find_binary, server_version

Figures = dict[str, float]
"""Values by name; the name ends in the unit."""


class Machine(Struct, frozen=True, kw_only=True):
    """Where the figures come from.

    Attributes:
        cores: Processors.
        python: Version of the interpreter; a peer that needs a newer one has the nearest.
        server: The server that all of them used.
        load: Mean number of busy processes over the minute before the bench.
    """

    cores: int
    python: str
    server: str
    load: float


class Report(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one bench.

    Attributes:
        name: The bench.
        machine: Where it ran.
        figures: Of runlane.
        peers: Of each peer.
        ratios: `<figure>/<peer>` → how many times better runlane is; below 1, the peer is.
        absent: Why a peer could not be measured here, by name.
    """

    name: str
    machine: Machine
    figures: Figures
    peers: dict[str, Figures]
    ratios: Figures
    absent: dict[str, str] = {}

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Return the head and the rows of a table of everything, as text."""
        head = ["figure", "runlane"]
        for peer in self.peers:
            head += [peer, "ratio"]
        names = dict.fromkeys([*self.figures, *(n for peer in self.peers.values() for n in peer)])
        rows: list[list[str]] = []
        for name in names:
            row = [name, _text(self.figures.get(name))]
            for peer, figures in self.peers.items():
                row += [_text(figures.get(name)), _text(self.ratios.get(f"{name}/{peer}"))]
            rows.append(row)
        return head, rows

    def table(self) -> Table:
        """Return the table for a terminal."""
        head, rows = self.rows()
        made = Table(
            title=f"{self.name} (a ratio above 1: runlane is better)",
            caption="\n".join(self._absences()),
        )
        for number, title in enumerate(head):
            made.add_column(title, justify="right" if number else "left", no_wrap=True)
        for row in rows:
            made.add_row(*row)
        return made

    def markdown(self) -> str:
        """Return the table for a document."""
        head, rows = self.rows()
        rule = ["---", *("---:" for _ in head[1:])]
        table = [f"| {' | '.join(row)} |" for row in [head, rule, *rows]]
        return "\n".join([*table, *(f"\n{line}" for line in self._absences())])

    def _absences(self) -> list[str]:
        return [f"{peer} is absent: {why}" for peer, why in self.absent.items()]


def machine() -> Machine:
    """Return what is measured on, as of now."""
    return Machine(
        cores=os.cpu_count() or 0,
        python=platform.python_version(),
        server=server_version(find_binary()),
        load=round(os.getloadavg()[0], 2),
    )


def compare(
    figures: Figures,
    peers: Mapping[str, Figures],
    *,
    less: Iterable[str] = (),
    more: Iterable[str] = (),
) -> Figures:
    """Return how many times better `figures` are than those of each peer that has them too.

    Args:
        figures: Of runlane.
        peers: Of each peer.
        less: Names of figures of which less is better.
        more: Names of figures of which more is better.
    """
    return {
        f"{name}/{peer}": theirs[name] / figures[name] if fewer else figures[name] / theirs[name]
        for peer, theirs in peers.items()
        for names, fewer in ((less, True), (more, False))
        for name in names
        if theirs.get(name) and figures.get(name)
    }


def medians(rounds: Sequence[Figures]) -> Figures:
    """Return the median of each figure over the rounds."""
    return {name: median(each[name] for each in rounds) for name in rounds[0]}


def percentile(values: Iterable[float], percent: int) -> float:
    """Return the nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[max(-(-len(ordered) * percent // 100), 1) - 1]


def _text(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
