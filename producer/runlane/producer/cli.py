"""`runlane`: one command; the folders that come with an extra add their subcommands to it."""

import signal
from importlib.metadata import EntryPoint, entry_points
from types import FrameType
from typing import Any, Final

import click

from runlane.journal.errors import RunlaneError
from runlane.producer.commands.abort import abort
from runlane.producer.commands.doctor import doctor
from runlane.producer.commands.exit_codes import INTERRUPTED, REFUSED, exit_code
from runlane.producer.commands.run import continue_run, follow_up, run
from runlane.producer.commands.sessions import sessions
from runlane.producer.commands.steer import steer
from runlane.producer.commands.tail import tail

PLUGINS: Final = "runlane.commands"
"""The entry point group of further subcommands."""


class RunlaneGroup(click.Group):
    """Finds further subcommands by entry point, and turns errors into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands."""
        return sorted({*super().list_commands(ctx), *entry_points(group=PLUGINS).names})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a subcommand; one that cannot be loaded says what it needs when it is called."""
        command = super().get_command(ctx, cmd_name)
        if command is None:
            for plugin in entry_points(group=PLUGINS, name=cmd_name):
                return _load(plugin)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except RunlaneError as error:
            click.echo(f"error: {' '.join(str(error).split())}", err=True)
            ctx.exit(exit_code(error))
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


def _load(plugin: EntryPoint) -> click.Command:
    try:
        command: click.Command = plugin.load()
    except (ImportError, AttributeError) as error:
        return _unavailable(plugin.name, error)
    return command


def _unavailable(name: str, error: Exception) -> click.Command:
    @click.pass_context
    def explain(ctx: click.Context, words: tuple[str, ...]) -> None:
        click.echo(
            f"error: `runlane {name}` cannot be loaded ({error}); "
            "it needs: pip install 'runlane[worker]'",
            err=True,
        )
        ctx.exit(REFUSED)

    return click.Command(
        name,
        callback=explain,
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        short_help="needs: pip install 'runlane[worker]'",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True},
    )


@click.group(
    cls=RunlaneGroup,
    epilog="""\b
Examples:
  runlane run support-42 "My order has not come." --agent support
  runlane tail support-42
  runlane sessions ls
""",
)
@click.version_option(package_name="runlane")
def cli() -> None:
    """Execute LLM agent runs on a fleet, and follow them from anywhere.

    The server is named by RUNLANE_REDIS_URL, in the environment or in a .env file, or by the
    --redis-url of each command.
    """


for subcommand in (run, continue_run, follow_up, steer, tail, abort, sessions, doctor):
    cli.add_command(subcommand)


def main() -> None:
    """Run the command line; a command that is terminated cleans up as one that is interrupted."""
    signal.signal(signal.SIGTERM, _interrupt)
    cli(prog_name="runlane")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    signal.raise_signal(signal.SIGINT)
