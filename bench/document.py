"""Keep what the benches said: a page for people, and JSON for programs."""

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.report import Report

_INTRODUCTION: Final = """\
# Benchmarks

Written on {date} by `{command}`, with {server} and Python {python} on {cores} cores, at a load
average of {load} when it began. Server, producer and workers share these cores, and so may other
work: ratios say more than figures, since all systems are measured in turn within the same
minutes. **A ratio above 1 means that runlane is better.**
"""


def save_json(reports: Sequence[Report], folder: Path) -> None:
    """Write each report into a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for report in reports:
        path = folder / f"{report.name}.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")


def save_page(
    reports: Sequence[Report], descriptions: Mapping[str, str], *, command: str, path: Path
) -> None:
    """Write the page with the tables of all reports.

    Args:
        reports: At least one.
        descriptions: What each bench measures, by name.
        command: What the reports came from.
        path: The page.
    """
    first = reports[0].machine
    parts = [
        _INTRODUCTION.format(
            date=datetime.datetime.now(datetime.UTC).date(),
            command=command,
            server=first.server,
            python=first.python,
            cores=first.cores,
            load=first.load,
        )
    ]
    for report in reports:
        text = descriptions[report.name].strip()
        parts.append(f"## {report.name}\n\n{text}\n\n{report.markdown()}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts))
