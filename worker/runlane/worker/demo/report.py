"""The end of the demo: the table, the verdict, and what to try next."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from runlane.producer.commands.own_name import own_name
from runlane.worker.demo.scenario import session_ids
from runlane.worker.demo.stage import Stage
from runlane.worker.demo.tasks import AGENT
from runlane.worker.demo.verdict import Line

_SHOWN_MAX: Final = 10


def print_verdict(console: Console, lines: Sequence[Line]) -> None:
    """Print what was measured, and what of it did not hold."""
    table = Table("", "", "held")
    for line in lines:
        held = Text("no", style="bold red") if line.violations else Text("yes", style="green")
        table.add_row(line.subject, Text(line.figure), held)
    console.print(table)
    violations = [f"{line.subject}: {violation}" for line in lines for violation in line.violations]
    if not violations:
        console.print(Text("verdict: all held", style="bold green"))
        return
    console.print(Text("verdict: not all held", style="bold red"))
    for violation in violations[:_SHOWN_MAX]:
        console.print(Text(f"  {violation}"), soft_wrap=True)
    if len(violations) > _SHOWN_MAX:
        console.print(f"  and {len(violations) - _SHOWN_MAX} more")


def print_next(console: Console) -> None:
    """Print what to try after the demo."""
    _print(
        console,
        "next:",
        f"{own_name()} dev runlane.worker.demo.agents:app    # the same agent again",
        "export RUNLANE_REDIS_URL=redis://127.0.0.1:6399    # in another terminal",
        f"{own_name()} run my-session 'Where is order A-1?' --agent {AGENT}",
        f"{own_name()} tail my-session",
    )


def print_kept(console: Console, stage: Stage) -> None:
    """Print how to use what stays up."""
    session_id = session_ids()[0]
    call = ' [[tool find_order {"order_id": "A-1"}]]' if stage.scripted else ""
    _print(
        console,
        "everything stays up until Ctrl-C; in another terminal:",
        *(f"export {name}={value}" for name, value in stage.exports.items()),
        f"{own_name()} sessions ls",
        f"{own_name()} sessions show {session_id}",
        f"{own_name()} tail {session_id}",
        f"{own_name()} run my-session 'Where is order A-1?{call}' --agent {AGENT}",
    )


def _print(console: Console, title: str, *commands: str) -> None:
    console.print(f"\n{title}")
    for command in commands:
        console.print(Text(f"  {command}"), soft_wrap=True)
