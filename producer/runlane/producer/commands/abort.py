"""`runlane abort`."""

import asyncio

import click

from runlane.journal.wire.control import ControlReceipt
from runlane.producer.commands.connection import Connection, with_connection
from runlane.producer.commands.exit_codes import REFUSED
from runlane.producer.handles import ABORT_REASON


@click.command(
    epilog="""\b
Example:
  runlane abort 0199f0a4-7c1e-7aa3-b6f1-6f0c2d0e9b11 --reason "wrong customer"
"""
)
@click.argument("run_id")
@click.option("--reason", default=ABORT_REASON, show_default=True, help="Kept with the run.")
@with_connection
def abort(run_id: str, reason: str, connection: Connection) -> None:
    """Ask a run to stop; one that has not begun ends at once.

    The exit code is 0 if the run will stop or has been stopped, 2 if it had ended by itself.
    """
    receipt = asyncio.run(_abort(connection, run_id, reason))
    click.echo(f"{receipt.run_id} {receipt.status}")
    if not receipt.accepted:
        raise click.exceptions.Exit(REFUSED)


async def _abort(connection: Connection, run_id: str, reason: str) -> ControlReceipt:
    async with connection.client() as client:
        return await client.abort(run_id, reason)
