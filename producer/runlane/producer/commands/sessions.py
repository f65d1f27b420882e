"""`runlane sessions`: which there are, and what was said in them."""

import asyncio
import sys
from datetime import UTC, datetime

import click
import msgspec
from rich.console import Console
from rich.table import Table

from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.wire.messages import AssistantMessage, Message, ToolMessage
from runlane.producer.commands.answer import printable
from runlane.producer.commands.connection import Connection, with_connection
from runlane.producer.overview import SessionInfo, SessionStatus


@click.group()
def sessions() -> None:
    """List sessions, or show one."""


@sessions.command(
    epilog="""\b
Examples:
  runlane sessions ls
  runlane sessions ls --json | jq -r .session_id
"""
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@with_connection
def ls(as_json: bool, connection: Connection) -> None:
    """List all sessions, the one that was asked for something last first."""
    asyncio.run(_ls(connection, as_json=as_json))


@sessions.command(
    epilog="""\b
Examples:
  runlane sessions show support-42
  runlane sessions show support-42 --json | jq .messages
"""
)
@click.argument("session")
@click.option("--branch", default=MAIN_BRANCH, show_default=True, help="The branch.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@with_connection
def show(session: str, branch: str, as_json: bool, connection: Connection) -> None:
    """Show where SESSION stands, and the transcript of one branch."""
    status, messages = asyncio.run(_show(connection, session, branch))
    if as_json:
        click.echo(msgspec.json.encode({**msgspec.structs.asdict(status), "messages": messages}))
        return
    for name, value in msgspec.structs.asdict(status).items():
        click.echo(f"{name}: {'-' if value is None else value}")
    for message in messages:
        click.echo(f"\n{_text(message)}")


async def _ls(connection: Connection, *, as_json: bool) -> None:
    async with connection.client() as client:
        if as_json or not sys.stdout.isatty():
            async for info in client.sessions():
                click.echo(msgspec.json.encode(info) if as_json else "\t".join(_columns(info)))
            return
        table = Table("session", "agent", "last submit", box=None)
        async for info in client.sessions():
            table.add_row(*_columns(info))
        Console().print(table)


async def _show(
    connection: Connection, session_id: str, branch: str
) -> tuple[SessionStatus, list[Message]]:
    async with connection.client() as client:
        session = client.session(session_id, branch=branch)
        return await session.status(), await session.messages()


def _columns(info: SessionInfo) -> tuple[str, str, str]:
    time = datetime.fromtimestamp(info.submitted_ms / 1000, UTC).astimezone()
    return info.session_id, info.agent, f"{time:%Y-%m-%d %H:%M:%S}"


def _text(message: Message) -> str:
    if isinstance(message, AssistantMessage):
        said = [f"assistant: {message.content}"] if message.content else []
        calls = [f"assistant calls {call.name} {call.arguments}" for call in message.tool_calls]
        text = "\n".join(said + calls)
    elif isinstance(message, ToolMessage):
        text = f"tool {message.tool_name}: {message.content}"
    else:
        text = f"user: {message.content}"
    return printable(text)
