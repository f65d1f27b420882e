"""`runlane steer`."""

import asyncio

import click

from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.wire.control import ControlReceipt
from runlane.producer.commands.connection import Connection, with_connection
from runlane.producer.commands.exit_codes import REFUSED


@click.command(
    epilog="""\b
Examples:
  runlane steer support-42 "She means the blue one."
  runlane steer support-42 "In French, please." --branch draft
"""
)
@click.argument("session_id")
@click.argument("text")
@click.option("--branch", default=MAIN_BRANCH, show_default=True, help="The branch.")
@with_connection
def steer(session_id: str, text: str, branch: str, connection: Connection) -> None:
    """Say something to the active run of a session, which hears it before its next turn.

    The exit code is 0 if the run will hear it, 2 if none is active, or it is about to end.
    """
    receipt = asyncio.run(_steer(connection, session_id, branch, text))
    click.echo(" ".join(filter(None, (receipt.run_id, receipt.status, receipt.input_id))))
    if not receipt.accepted:
        raise click.exceptions.Exit(REFUSED)


async def _steer(connection: Connection, session_id: str, branch: str, text: str) -> ControlReceipt:
    async with connection.client() as client:
        return await client.session(session_id, branch=branch).steer(text)
