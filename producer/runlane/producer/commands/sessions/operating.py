"""`runlane sessions steal` and `rm`: what an operator does, whatever goes on."""

import asyncio
import sys

import click
import msgspec

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.control import ControlReceipt
from runlane.producer.commands.connection import Connection, with_connection
from runlane.producer.commands.exit_codes import REFUSED
from runlane.producer.commands.sessions.options import branch_option, json_option
from runlane.producer.session import STEAL_REASON


@click.command(
    epilog="""\b
Example:
  runlane sessions steal support-42 --reason "the worker hangs"
"""
)
@click.argument("session")
@branch_option
@click.option("--reason", default=STEAL_REASON, show_default=True, help="Kept in the journal.")
@json_option
@with_connection
def steal(session: str, branch: str, reason: str, as_json: bool, connection: Connection) -> None:
    """Take the active run of SESSION away from its worker: another one carries it on at once.

    The exit code is 0 if it was taken away, 2 if no worker had one.
    """
    receipt = asyncio.run(_steal(connection, session, branch, reason))
    if as_json:
        click.echo(msgspec.json.encode(receipt))
    else:
        click.echo(f"{receipt.run_id} {receipt.status}".strip())
    if not receipt.accepted:
        raise click.exceptions.Exit(REFUSED)


@click.command(
    epilog="""\b
Examples:
  runlane sessions rm support-42
  runlane sessions rm support-42 --yes    # from a script
"""
)
@click.argument("session")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_connection
def rm(session: str, yes: bool, connection: Connection) -> None:
    """Delete SESSION with all that is kept of it; its runs end."""
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidInputError("nobody can be asked here; give --yes to delete the session")
        click.confirm(f"Delete session {session!r} with all its branches?", abort=True, err=True)
    asyncio.run(_rm(connection, session))


async def _rm(connection: Connection, session_id: str) -> None:
    async with connection.client() as client:
        await client.session(session_id).delete()


async def _steal(
    connection: Connection, session_id: str, branch: str, reason: str
) -> ControlReceipt:
    async with connection.client() as client:
        session = client.session(session_id, branch=branch)
        await session.head()
        return await session.steal(reason)
