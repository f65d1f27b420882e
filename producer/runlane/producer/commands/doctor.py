"""`runlane doctor`: what durability a server gives, and what is wrong with it."""

import asyncio
from typing import Final

import click
import msgspec

from runlane.journal.errors import InvalidInputError, ServerUnavailableError
from runlane.journal.settings import load_settings
from runlane.producer.commands.connection import (
    CONNECT_TIMEOUT_S,
    RETRY_S,
    Connection,
    with_connection,
)
from runlane.producer.commands.exit_codes import NOT_COMPLETED
from runlane.producer.diagnosis import (
    Facts,
    Finding,
    Promises,
    Status,
    Verdict,
    check,
    examine,
    judge,
    promises_of,
)

_WIDTH: Final = 100
_COLOURS: Final = {Status.OK: "green", Status.WARNING: "yellow", Status.ERROR: "red"}
_EVENTS: Final = {
    "process_crash": "a crash of the server",
    "power_cut": "a power cut",
    "failover": "a failover",
    "partition": "a split network",
}


@click.command(
    epilog="""\b
Examples:
  runlane doctor
  RUNLANE_DURABILITY=ha-acked runlane doctor --json | jq -r '.findings[] | select(.status=="error")'
"""
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@with_connection
@click.pass_context
def doctor(ctx: click.Context, as_json: bool, connection: Connection) -> None:
    """Say what the configured server keeps of acknowledged writes, and what is wrong with it.

    Nothing is changed. Exit code: 0, or 1 if there is an error, or 3 if the server cannot be
    reached.
    """
    facts = asyncio.run(_examine(connection))
    verdict = judge(facts)
    promises = promises_of(facts, verdict)
    findings = check(facts, verdict)
    if as_json:
        report = {
            "durability": facts.durability,
            "level": verdict.level,
            "survives": promises,
            "findings": findings,
            "facts": facts,
        }
        click.echo(msgspec.json.encode(report))
    else:
        _show(facts, verdict, promises, findings)
    if any(finding.status is Status.ERROR for finding in findings):
        ctx.exit(NOT_COMPLETED)


async def _examine(connection: Connection) -> Facts:
    settings = load_settings(
        redis_url=connection.redis_url, prefix=connection.prefix, retry_s=RETRY_S
    )
    if settings.redis_url is None:
        raise InvalidInputError("no Redis server is named: set RUNLANE_REDIS_URL or --redis-url")
    try:
        async with asyncio.timeout(2 * CONNECT_TIMEOUT_S):
            return await examine(settings.redis_url, settings)
    except TimeoutError as error:
        raise ServerUnavailableError(
            f"the Redis server gave no answer within {2 * CONNECT_TIMEOUT_S:g} s"
        ) from error


def _show(facts: Facts, verdict: Verdict, promises: Promises, findings: list[Finding]) -> None:
    click.echo(f"{facts.version} at {facts.url}, prefix {facts.prefix}\n")
    click.echo(f"durability: {verdict.level} (RUNLANE_DURABILITY={facts.durability})")
    for name, promise in msgspec.structs.asdict(promises).items():
        click.echo(_wrapped(f"  {_EVENTS[name]:<23}", promise))
    click.echo()
    for finding in findings:
        line = _wrapped(f"{finding.status:<8} {finding.subject:<13}", finding.text)
        colour = _COLOURS[finding.status]
        click.echo(line.replace(finding.status, click.style(finding.status, fg=colour), 1))
        if finding.advice:
            click.echo(_wrapped(f"{'':<22}→ ", finding.advice))


def _wrapped(beginning: str, text: str) -> str:
    return click.wrap_text(text, _WIDTH, beginning, " " * len(beginning))
