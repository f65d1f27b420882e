"""`runlane sessions fork`, `rollback`, `retry` and `promote`: begin branches, or follow one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click
import msgspec

from runlane.producer.commands.connection import Connection, with_connection
from runlane.producer.commands.sessions.options import branch_option, json_option, name_option
from runlane.producer.session import Session

T = TypeVar("T")


@click.command(
    epilog="""\b
Examples:
  runlane sessions fork support-42
  runlane sessions fork support-42 --at 17-94.0c6f… --name what-if
  runlane run support-42 "And in French?" --branch what-if
"""
)
@click.argument("session")
@branch_option
@click.option("--at", metavar="RECORD", help="A record of the branch; default: its head.")
@name_option
@json_option
@with_connection
def fork(
    session: str,
    branch: str,
    at: str | None,
    name: str | None,
    as_json: bool,
    connection: Connection,
) -> None:
    """Begin a branch of SESSION that goes on from another one, and print its name."""
    made = _do(connection, session, branch, lambda lane: lane.fork(at, name=name))
    _print_branch(made, as_json=as_json)


@click.command(
    epilog="""\b
Examples:
  runlane sessions rollback support-42 17-94.0c6f… --name before
  runlane sessions promote support-42 before    # main goes on from there
"""
)
@click.argument("session")
@click.argument("record")
@branch_option
@name_option
@json_option
@with_connection
def rollback(
    session: str,
    record: str,
    branch: str,
    name: str | None,
    as_json: bool,
    connection: Connection,
) -> None:
    """Begin a branch of SESSION at an earlier RECORD, and print its name.

    The branch that the record belongs to stays as it is.
    """
    made = _do(connection, session, branch, lambda lane: lane.rollback(record, name=name))
    _print_branch(made, as_json=as_json)


@click.command(
    epilog="""\b
Example:
  runlane sessions retry support-42 0199f0a4-7c1e-7aa3-b6f1-6f0c2d0e9b11 --name again
  runlane run support-42 "My order has not come." --branch again
"""
)
@click.argument("session")
@click.argument("run")
@branch_option
@name_option
@json_option
@with_connection
def retry(
    session: str, run: str, branch: str, name: str | None, as_json: bool, connection: Connection
) -> None:
    """Begin a branch of SESSION as of before RUN; print its name and, below it, the run's task.

    Nothing is executed. The run is looked for on the branch that is named, if it ended long ago.
    """
    made = _do(connection, session, branch, lambda lane: lane.prepare_retry(run, name=name))
    click.echo(msgspec.json.encode(made) if as_json else f"{made.branch_id}\n{made.task}")


@click.command(
    epilog="""\b
Example:
  runlane sessions promote support-42 what-if
"""
)
@click.argument("session")
@click.argument("branch")
@json_option
@with_connection
def promote(session: str, branch: str, as_json: bool, connection: Connection) -> None:
    """Let main of SESSION go on from the head of BRANCH, and print the id of its new head."""
    head = _do(connection, session, branch, lambda lane: lane.promote())
    click.echo(msgspec.json.encode({"session_id": session, "head_id": head}) if as_json else head)


def _do(
    connection: Connection, session_id: str, branch: str, verb: Callable[[Session], Awaitable[T]]
) -> T:
    async def do() -> T:
        async with connection.client() as client:
            return await verb(client.session(session_id, branch=branch))

    return asyncio.run(do())


def _print_branch(made: Session, *, as_json: bool) -> None:
    place = {"session_id": made.session_id, "branch_id": made.branch_id}
    click.echo(msgspec.json.encode(place) if as_json else made.branch_id)
