"""`runlane tail`: events, one a line."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final

import click
import msgspec

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.events import Event
from runlane.producer.commands.connection import Connection, with_connection

DETAIL_LENGTH_MAX: Final = 200


@click.command(
    epilog="""\b
Examples:
  runlane tail support-42
  runlane tail support-42 --json | jq -r 'select(.kind == "tool_started") .payload.call.name'
  runlane tail support-42 --after 17-94.0c6f…    # what came after an event, by its cursor
"""
)
@click.argument("session")
@click.option("--run", "run_id", metavar="ID", help="Only this run; ends with it.")
@click.option("--after", metavar="CURSOR", help="Only what comes after this event.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@with_connection
def tail(
    session: str, run_id: str | None, after: str | None, as_json: bool, connection: Connection
) -> None:
    """Show the events of SESSION from the beginning on, and go on as they happen.

    A line holds the time, the branch, the run, the kind of the event and its content.
    """
    asyncio.run(_tail(connection, session, run_id, after, as_json=as_json))


async def _tail(
    connection: Connection, session_id: str, run_id: str | None, after: str | None, *, as_json: bool
) -> None:
    async with connection.client() as client:
        session = client.session(session_id)
        await session.status()
        if run_id is None:
            source = session.events(after)
        else:
            handle = await client.run_handle(run_id)
            if handle.session_id != session_id:
                raise InvalidInputError(
                    f"run {handle.run_id} belongs to session {handle.session_id!r}"
                )
            source = handle.events(after)
        async with aclosing(source) as events:
            async for event in events:
                click.echo(msgspec.json.encode(event) if as_json else _line(event))


def _line(event: Event) -> str:
    time = datetime.fromtimestamp(event.at_ms / 1000, UTC).astimezone()
    detail = msgspec.json.encode(event.payload).decode() if event.payload else ""
    if len(detail) > DETAIL_LENGTH_MAX:
        detail = f"{detail[:DETAIL_LENGTH_MAX]}…"
    place = f"{event.branch_id} {event.run_id}".strip()
    return f"{time:%H:%M:%S}.{event.at_ms % 1000:03} {place} {event.kind} {detail}".rstrip()
