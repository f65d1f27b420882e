"""`runlane sessions ls`, `branches` and `records`: one thing a line."""

import asyncio
import sys
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final

import click
import msgspec
from rich.console import Console
from rich.table import Table

from runlane.journal.tree import BranchInfo
from runlane.journal.wire.records import Record
from runlane.producer.commands.connection import Connection, with_connection
from runlane.producer.commands.sessions.options import json_lines_option
from runlane.producer.overview import SessionInfo

DETAIL_LENGTH_MAX: Final = 200


@click.command(
    epilog="""\b
Examples:
  runlane sessions ls
  runlane sessions ls --json | jq -r .session_id
"""
)
@json_lines_option
@with_connection
def ls(as_json: bool, connection: Connection) -> None:
    """List all sessions, the one that was asked for something last first."""
    asyncio.run(_ls(connection, as_json=as_json))


@click.command(
    epilog="""\b
Examples:
  runlane sessions branches support-42
  runlane sessions branches support-42 --json | jq -r .head_id
"""
)
@click.argument("session")
@json_lines_option
@with_connection
def branches(session: str, as_json: bool, connection: Connection) -> None:
    """List the branches of SESSION in the order in which they were made.

    A line holds the name, why it was made and from which branch, and the record id of its head.
    """
    asyncio.run(_branches(connection, session, as_json=as_json))


@click.command(
    epilog="""\b
Examples:
  runlane sessions records support-42
  runlane sessions records support-42 --newest-first --limit 20
  runlane sessions records support-42 --json | jq -r 'select(.kind == "run_finished") .record_id'
"""
)
@click.argument("session")
@click.option("--newest-first", is_flag=True, help="From the last record back to the first.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many.")
@json_lines_option
@with_connection
def records(
    session: str, newest_first: bool, limit: int | None, as_json: bool, connection: Connection
) -> None:
    """List the records of SESSION, of all branches, the archived ones too.

    A line holds the record id, the time, the branch, the kind of the record and its content.
    """
    asyncio.run(_records(connection, session, newest_first, limit, as_json=as_json))


async def _ls(connection: Connection, *, as_json: bool) -> None:
    async with connection.client() as client:
        table = Table("session", "agent", "last submit", box=None)
        async for info in client.sessions():
            _add(table, info, _session_columns(info), as_json=as_json)
        _show(table)


async def _branches(connection: Connection, session_id: str, *, as_json: bool) -> None:
    async with connection.client() as client:
        table = Table("branch", "made by", "from", "head", box=None)
        for info in await client.session(session_id).list_branches():
            _add(table, info, _branch_columns(info), as_json=as_json)
        _show(table)


async def _records(
    connection: Connection,
    session_id: str,
    newest_first: bool,
    limit: int | None,
    *,
    as_json: bool,
) -> None:
    async with connection.client() as client:
        session = client.session(session_id)
        await session.status()
        count = 0
        async with aclosing(session.records(newest_first=newest_first)) as found:
            async for record in found:
                click.echo(msgspec.json.encode(record) if as_json else _line(record))
                count += 1
                if count == limit:
                    break


def _add(
    table: Table, info: SessionInfo | BranchInfo, columns: tuple[str, ...], *, as_json: bool
) -> None:
    """Print a line at once where a script reads it, else keep it for the table."""
    if as_json or not sys.stdout.isatty():
        click.echo(msgspec.json.encode(info) if as_json else "\t".join(columns))
    else:
        table.add_row(*columns)


def _show(table: Table) -> None:
    if table.row_count:
        Console().print(table)


def _session_columns(info: SessionInfo) -> tuple[str, ...]:
    return info.session_id, info.agent or "-", f"{_time(info.submitted_ms):%Y-%m-%d %H:%M:%S}"


def _branch_columns(info: BranchInfo) -> tuple[str, ...]:
    return info.branch_id, info.intent or "-", info.source_branch_id or "-", info.head_id or "-"


def _line(record: Record) -> str:
    detail = msgspec.json.encode(record.body).decode()
    if len(detail) > DETAIL_LENGTH_MAX:
        detail = f"{detail[:DETAIL_LENGTH_MAX]}…"
    time = _time(record.at_ms)
    return f"{record.record_id} {time:%H:%M:%S} {record.branch_id} {record.kind} {detail}"


def _time(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone()
