"""`runlane run`, `continue` and `follow-up`: ask, then follow the answer."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import wraps
from typing import Any

import click
import msgspec
from msgspec import Struct

from runlane.journal.errors import ResultTimeoutError
from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.wire.results import AgentRunResult
from runlane.producer.commands.answer import Answer, describe, note
from runlane.producer.commands.connection import Connection, with_connection
from runlane.producer.commands.exit_codes import NOT_COMPLETED
from runlane.producer.handles import RunHandle
from runlane.producer.runs import RunState
from runlane.producer.session import Session


class Asking(Struct, frozen=True):
    """Where a run is asked for, and what is done once it was accepted.

    Attributes:
        connection: The deployment.
        branch: The branch of the session.
        wait: Whether to follow the run to its end.
        as_json: Whether to print one JSON object instead of text.
        timeout: How long to follow it, in seconds; None for as long as it takes.
    """

    connection: Connection
    branch: str
    wait: bool
    as_json: bool
    timeout: float | None

    def ask(
        self, session_id: str, agent: str | None, verb: Callable[[Session], Awaitable[RunHandle]]
    ) -> None:
        """Ask for a run, follow it, and exit with 1 if it does not complete.

        Raises:
            RunlaneError: The run was refused, or cannot be followed.
        """
        result = asyncio.run(self._ask(session_id, agent, verb))
        if result is not None and not result.succeeded:
            raise click.exceptions.Exit(NOT_COMPLETED)

    async def _ask(
        self, session_id: str, agent: str | None, verb: Callable[[Session], Awaitable[RunHandle]]
    ) -> AgentRunResult | None:
        async with self.connection.client() as client:
            session = client.session(session_id, agent=agent, branch=self.branch)
            handle = await verb(session)
            if not self.wait:
                self._print_accepted(handle)
                return None
            try:
                result = await self._follow(handle)
            except asyncio.CancelledError:
                note(
                    f"run {handle.run_id} goes on; follow it by: "
                    f"runlane tail {handle.session_id} --run {handle.run_id}"
                )
                raise
            self._print_outcome(handle, result)
            return result

    async def _follow(self, handle: RunHandle) -> AgentRunResult:
        if self.as_json:
            return await handle.result(self.timeout)
        info = await handle.status()
        if info.state is RunState.PENDING_VERSION:
            note(f"no live worker serves {info.agent!r}: the run waits for one")
        answer = Answer()
        try:
            async with asyncio.timeout(self.timeout), aclosing(handle.events()) as events:
                async for event in events:
                    answer.show(event)
        except TimeoutError as error:
            raise ResultTimeoutError(run_id=handle.run_id, timeout=self.timeout or 0) from error
        return await handle.result()

    def _print_accepted(self, handle: RunHandle) -> None:
        if self.as_json:
            _echo_json(_place(handle))
        else:
            click.echo(handle.run_id)

    def _print_outcome(self, handle: RunHandle, result: AgentRunResult) -> None:
        if not self.as_json:
            note(describe(handle.run_id, result))
            return
        fields = {name: getattr(result, name) for name in result.__struct_fields__}
        usage = {name: getattr(result.usage, name) for name in result.usage.__struct_fields__}
        _echo_json({**_place(handle), **fields, "usage": usage})


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Asking`, which reach it as one `asked`."""

    @click.option("--branch", default=MAIN_BRANCH, show_default=True, help="The branch.")
    @click.option("--no-wait", is_flag=True, help="Print the run id and leave.")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
    @click.option(
        "--timeout",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="Leave after this long; the run goes on.",
    )
    @with_connection
    @wraps(command)
    def wrapper(
        *args: Any,
        connection: Connection,
        branch: str,
        no_wait: bool,
        as_json: bool,
        timeout: float | None,
        **options: Any,
    ) -> None:
        asked = Asking(connection, branch, not no_wait, as_json, timeout)
        command(*args, asked=asked, **options)

    return wrapper


@click.command(
    epilog="""\b
Examples:
  runlane run support-42 "My order has not come." --agent support
  runlane run support-42 "And the invoice?" --json | jq -r .output
  runlane run support-42 "Once only, please." --idempotency-key msg-981 --no-wait
"""
)
@click.argument("session")
@click.argument("task")
@click.option("--agent", help="The agent; may be left out for a session that exists.")
@click.option("--idempotency-key", metavar="KEY", help="The same key again is the same run.")
@asking
def run(
    session: str, task: str, agent: str | None, idempotency_key: str | None, asked: Asking
) -> None:
    """Ask SESSION to answer TASK, and show the answer as it comes.

    The exit code is 0 if the run completed, 1 if it did not, 2 if it was refused and 3 if the
    server cannot be reached.
    """
    asked.ask(session, agent, lambda lane: lane.run(task, idempotency_key=idempotency_key))


@click.command(
    "continue",
    epilog="""\b
Example:
  runlane continue support-42
""",
)
@click.argument("session")
@asking
def continue_run(session: str, asked: Asking) -> None:
    """Go on from where the last run of SESSION ended, without a new message."""
    asked.ask(session, None, lambda lane: lane.continue_run())


@click.command(
    "follow-up",
    epilog="""\b
Example:
  runlane follow-up support-42 "And send me the receipt."
""",
)
@click.argument("session")
@click.argument("task")
@click.option("--idempotency-key", metavar="KEY", help="The same key again is the same run.")
@asking
def follow_up(session: str, task: str, idempotency_key: str | None, asked: Asking) -> None:
    """Have TASK answered directly after the active run of SESSION.

    It is discarded if that run does not complete.
    """
    asked.ask(session, None, lambda lane: lane.follow_up(task, idempotency_key=idempotency_key))


def _place(handle: RunHandle) -> dict[str, Any]:
    return {
        "run_id": handle.run_id,
        "session_id": handle.session_id,
        "branch_id": handle.branch_id,
    }


def _echo_json(value: dict[str, Any]) -> None:
    click.echo(msgspec.json.encode(value))
