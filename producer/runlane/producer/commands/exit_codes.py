"""What the exit code of the command says."""

from typing import Final

from runlane.journal.errors import (
    InvalidInputError,
    NotFoundError,
    RefusedError,
    RunlaneError,
    ServerError,
)

NOT_COMPLETED: Final = 1
REFUSED: Final = 2
"""Also what click exits with when it is called wrongly."""
SERVER_UNUSABLE: Final = 3
INTERRUPTED: Final = 130


def exit_code(error: RunlaneError) -> int:
    """Return the exit code that tells a script what went wrong."""
    if isinstance(error, ServerError):
        return SERVER_UNUSABLE
    if isinstance(error, InvalidInputError | NotFoundError | RefusedError):
        return REFUSED
    return NOT_COMPLETED
