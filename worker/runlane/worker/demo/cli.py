"""`runlane demo`: what it takes, what it prints, and its exit code."""

import asyncio
import signal
from contextlib import suppress
from typing import Final

import click
from rich.console import Console

from runlane.producer.commands.exit_codes import NOT_COMPLETED
from runlane.worker.demo.fleet import Fleet
from runlane.worker.demo.performance import perform
from runlane.worker.demo.report import print_kept, print_next, print_verdict
from runlane.worker.demo.stage import set_stage

_WIDTH: Final = 100
"""Of what is printed to no terminal."""


@click.command(
    epilog="""\b
Examples:
  runlane demo
  runlane demo --keep                          # and look around in it afterwards
  RUNLANE_REDIS_URL=redis://10.0.0.5 runlane demo

It exits with 0 if all held, else with 1 (2 for a bad setting, 3 for want of a Redis server), and
keeps logs, data and ledger then.
"""
)
@click.option("--keep", is_flag=True, help="Keep everything up after the verdict, until Ctrl-C.")
def demo(keep: bool) -> None:
    """Run 60 agent runs on three workers, kill one, drain one, and judge what was promised.

    It needs nothing: a Redis server of its own (or a prefix of its own on the server of
    RUNLANE_REDIS_URL), worker processes, and a scripted model. Twenty sessions ask for a run, a
    follow-up while it is active, and a continue. One worker gets SIGKILL in the middle of a
    refund, another one SIGTERM. A ledger outside of Redis tells how often each refund happened.

    With MODEL_URL, MODEL_API_KEY and CHAT_MODEL set, that model answers instead. What it will say
    is not known, so the checks that depend on it are left out (that every run completes, that a
    refund was cut in two, that a run was handed back); the others stay. It may take minutes.
    """
    terminal = Console()
    console = terminal if terminal.is_interactive else Console(width=_WIDTH)
    with set_stage() as stage, Fleet(stage.environ, stage.folder) as fleet:
        lines = asyncio.run(perform(stage, fleet, console))
        print_verdict(console, lines)
        held = not any(line.violations for line in lines)
        if not held:
            console.print(f"logs, data and ledger are kept in {stage.folder}", soft_wrap=True)
        if keep:
            print_kept(console, stage)
            with suppress(KeyboardInterrupt):
                signal.pause()
        else:
            print_next(console)
        if not held:
            raise click.exceptions.Exit(NOT_COMPLETED)
