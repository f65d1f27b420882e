"""What several commands ask for."""

from typing import Final

import click

from runlane.journal.ids import MAIN_BRANCH

branch_option: Final = click.option(
    "--branch", default=MAIN_BRANCH, show_default=True, help="The branch."
)
name_option: Final = click.option(
    "--name", metavar="BRANCH", help="Of the new branch; default: one is made up."
)
json_option: Final = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
json_lines_option: Final = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object a line."
)
