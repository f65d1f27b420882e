"""`runlane sessions`: look at them, branch them, move them."""

import click

from runlane.producer.commands.sessions.branching import fork, promote, retry, rollback
from runlane.producer.commands.sessions.listing import branches, ls, records
from runlane.producer.commands.sessions.moving import export, import_
from runlane.producer.commands.sessions.operating import rm, steal
from runlane.producer.commands.sessions.show import show

COMMANDS = (
    *(ls, show, branches, records),
    *(fork, rollback, retry, promote),
    *(export, import_, steal, rm),
)


@click.group()
def sessions() -> None:
    """Look at sessions, branch them, move them to and from files, delete them."""


for command in COMMANDS:
    sessions.add_command(command)
