"""Limits of a run, and what to do about a call whose outcome a crash has lost."""

from enum import StrEnum

from msgspec import Struct

from runlane.journal.errors import InvalidInputError


class RuntimePolicy(Struct, frozen=True, kw_only=True):
    """Limits of one run.

    Attributes:
        max_steps: Model responses that a run may take, over all its attempts.
    """

    max_steps: int = 20

    def __post_init__(self) -> None:
        if self.max_steps < 1:
            raise InvalidInputError(f"max_steps {self.max_steps} is not at least 1")


class RecoveryPolicy(StrEnum):
    """What happens when a side-effecting call has begun, has no result, and nobody can tell.

    REPORT tells the model that the outcome is unknown; FAIL ends the run.
    """

    REPORT = "report"
    FAIL = "fail"
