"""`runlane sessions show`: where a session stands, and what was said in it."""

import asyncio

import click
import msgspec
from msgspec import Struct

from runlane.journal.tree import BranchInfo
from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    SystemMessage,
    ToolMessage,
)
from runlane.producer.commands.answer import printable
from runlane.producer.commands.connection import Connection, with_connection
from runlane.producer.commands.sessions.options import branch_option, json_option
from runlane.producer.overview import SessionStatus


class _Shown(Struct, frozen=True):
    status: SessionStatus
    branches: list[BranchInfo]
    messages: list[ContextMessage]


@click.command(
    epilog="""\b
Examples:
  runlane sessions show support-42
  runlane sessions show support-42 --branch retry-1 --json | jq .messages
"""
)
@click.argument("session")
@branch_option
@json_option
@with_connection
def show(session: str, branch: str, as_json: bool, connection: Connection) -> None:
    """Show where SESSION stands, its branches, and the transcript of one of them."""
    shown = asyncio.run(_read(connection, session, branch))
    status = msgspec.structs.asdict(shown.status)
    if as_json:
        lists = {"branches": shown.branches, "messages": shown.messages}
        click.echo(msgspec.json.encode(status | lists))
        return
    status["branches"] = ", ".join(info.branch_id for info in shown.branches)
    for name, value in status.items():
        click.echo(f"{name}: {'-' if value is None else value}")
    for message in shown.messages:
        click.echo(f"\n{_text(message)}")


async def _read(connection: Connection, session_id: str, branch: str) -> _Shown:
    async with connection.client() as client:
        session = client.session(session_id, branch=branch)
        status, branches = await session.status(), await session.list_branches()
        return _Shown(status, branches, await session.messages())


def _text(message: ContextMessage) -> str:
    if isinstance(message, AssistantMessage):
        said = [f"assistant: {message.content}"] if message.content else []
        calls = [f"assistant calls {call.name} {call.arguments}" for call in message.tool_calls]
        text = "\n".join(said + calls)
    elif isinstance(message, ToolMessage):
        text = f"tool {message.tool_name}: {message.content}"
    else:
        who = "system" if isinstance(message, SystemMessage) else "user"
        text = f"{who}: {message.content}"
    return printable(text)
