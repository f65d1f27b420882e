"""`python -m bench NAME`: measure runlane and its peers on this machine, in turn."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Final

import click
import msgspec
import uvloop
from rich.console import Console

from bench import append, checkout, loop, memory, slots, start, takeover, throughput
from bench.document import save_json, save_page
from bench.lab import ROOT
from bench.report import Report

BENCHES: Final[MappingProxyType[str, ModuleType]] = MappingProxyType(
    {
        "start": start,
        "throughput": throughput,
        "takeover": takeover,
        "slots": slots,
        "append": append,
        "checkout": checkout,
        "memory": memory,
        "loop": loop,
    }
)

_TABLE_WIDTH: Final = 160
"""Numbers that are cut off say nothing; in a narrower terminal the lines wrap."""


@click.command()
@click.argument("name", type=click.Choice([*BENCHES, "all"]))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each bench.")
@click.option("--full", is_flag=True, help="Measure more and longer.")
def main(name: str, as_json: bool, full: bool) -> None:
    """Measure runlane beside its peers, each on an empty server that this command starts.

    Peers with packages of their own (EJAgent, LangGraph, tada-core) get a virtual environment each
    in the user's cache directory, at the first use; one that cannot be had is shown as absent.

    'all' takes about 9 minutes, with --full about 40, and writes the results to
    docs/benchmarks.md and bench/results/.
    """
    if not Path("/proc/self/stat").exists():
        raise click.UsageError("the benches need Linux: they read CPU times from /proc")
    reports: list[Report] = []
    for each in BENCHES if name == "all" else [name]:
        report = measure(each, full=full)
        reports.append(report)
        _show(report, as_json=as_json)
    if name == "all":
        keep(reports, command=f"python -m bench all{' --full' if full else ''}", root=ROOT)


def measure(name: str, *, full: bool) -> Report:
    """Run one bench."""
    bench = BENCHES[name]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        report: Report = runner.run(bench.run(bench.FULL if full else bench.SHORT))
    return report


def keep(reports: Sequence[Report], *, command: str, root: Path) -> None:
    """Write the page and the JSON files into the checkout."""
    descriptions = {name: bench.__doc__ or "" for name, bench in BENCHES.items()}
    save_json(reports, root / "bench" / "results")
    save_page(reports, descriptions, command=command, path=root / "docs" / "benchmarks.md")


def _show(report: Report, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(report))
    else:
        console = Console()
        console.width = max(console.width, _TABLE_WIDTH)
        console.print(report.table())


if __name__ == "__main__":
    main()
