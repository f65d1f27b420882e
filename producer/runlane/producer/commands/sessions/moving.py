"""`runlane sessions export` and `import`: out into a file, and in from one."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import BinaryIO, TextIO, TypeVar, get_args

import click
import msgspec

from runlane.journal.errors import InvalidInputError, RunlaneError
from runlane.journal.transfer.imported import ImportReport
from runlane.producer.commands.answer import note
from runlane.producer.commands.connection import Connection, with_connection
from runlane.producer.commands.progress import Bar
from runlane.producer.commands.sessions.options import json_option
from runlane.producer.files import Progress
from runlane.producer.importing import FileFormat
from runlane.producer.session import Session

T = TypeVar("T")


@click.command(
    epilog="""\b
Examples:
  runlane sessions export support-42 support-42.jsonl
  runlane sessions export support-42 - | gzip > support-42.jsonl.gz
"""
)
@click.argument("session")
@click.argument("file")
@with_connection
def export(session: str, file: str, connection: Connection) -> None:
    """Write SESSION into FILE, or to standard output if FILE is -.

    The file is a journal that EJAgent Core 0.6 loads, and `runlane sessions import` too. It holds
    what is in the session now; runs may go on meanwhile.
    """
    target = _standard(sys.stdout, "output") if file == "-" else file
    report = _move(
        connection,
        session,
        None,
        file,
        lambda lane, progress: lane.export_jsonl(target, progress=progress),
    )
    note(f"lines: {report.lines}, bytes: {report.size}, up to revision {report.revision}")


@click.command(
    "import",
    epilog="""\b
Examples:
  runlane sessions import support-42.jsonl --session support-43
  gunzip -c support-42.jsonl.gz | runlane sessions import - --session support-43 --agent support
  runlane sessions import state.json --session old-7 --format tada
""",
)
@click.argument("file")
@click.option("--session", required=True, metavar="NAME", help="The session that it becomes.")
@click.option(
    "--agent", help="The agent; default: that of the file if it is known here, or of the first run."
)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(get_args(FileFormat)),
    default="ejagent",
    show_default=True,
    help="What wrote the file: EJAgent, SimAgentPlg or export; or tada-core.",
)
@json_option
@with_connection
def import_(
    file: str,
    session: str,
    agent: str | None,
    file_format: FileFormat,
    as_json: bool,
    connection: Connection,
) -> None:
    """Make a new session of FILE, or of standard input if FILE is -.

    The whole file is checked before anything is stored; nobody sees the session before it is
    complete.
    """
    source = _standard(sys.stdin, "input") if file == "-" else file
    report = _move(
        connection,
        session,
        agent,
        file,
        lambda lane, progress: lane.import_jsonl(
            source, file_format=file_format, progress=progress
        ),
    )
    if as_json:
        click.echo(msgspec.json.encode({"session_id": session, **msgspec.structs.asdict(report)}))
    else:
        _describe(report)


def _standard(stream: TextIO | None, name: str) -> BinaryIO:
    if stream is None:
        raise InvalidInputError(f"standard {name} is closed; name a file in the place of -")
    return stream.buffer


def _move(
    connection: Connection,
    session_id: str,
    agent: str | None,
    file: str,
    verb: Callable[[Session, Progress], Awaitable[T]],
) -> T:
    async def move(bar: Bar) -> T:
        async with connection.client() as client:
            return await verb(client.session(session_id, agent=agent), bar)

    try:
        with Bar(session_id) as bar:
            return asyncio.run(move(bar))
    except RunlaneError:
        raise
    except OSError as error:
        raise InvalidInputError(f"{file}: {error.strerror or error}") from error


def _describe(report: ImportReport) -> None:
    note(f"lines: {report.lines}, branches: {report.branches}, runs: {report.runs}")
    if report.torn:
        note("the last line is incomplete: it was left out")
    if report.closed_runs:
        note(f"unfinished runs that were ended as worker_lost: {report.closed_runs}")
    if report.renamed_runs:
        note(
            f"runs whose ids are none here or are there twice, and became others: "
            f"{report.renamed_runs}"
        )
    if report.left_out:
        note(f"parts of messages that no transcript here can hold, left out: {report.left_out}")
    for old, new in report.renamed_branches.items():
        note(f"branch {old!r} is now {new!r}")
