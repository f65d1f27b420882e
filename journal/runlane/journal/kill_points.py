"""Named places where a test may kill the process, as a crash there would.

`RUNLANE_KILL_AT=<name>` ends the process by SIGKILL when it first gets there; `<name>:3` when
it gets there for the third time.
"""

import os
import re
import signal
from typing import Final

from runlane.journal.errors import InvalidInputError

KILL_POINTS: Final = (
    "after_claim",  # the lease is ours, nothing was read
    "after_checkout",  # the journal was read, nothing was written
    "after_run_started",  # the run is in the journal
    "after_message_appended",  # the assistant message and its first intents are in the journal
    "after_tool_intent",  # a later batch's intents are in the journal
    "after_tool_ran",  # the side effect happened, its result is only in memory
    "after_content_kept",  # a result too large for a record is kept, no record names it
    "after_checkpoint",  # a checkpoint is in the journal, in the middle of the run
    "before_finish",  # everything is journaled but the end
    "after_finish",  # the end is journaled, the worker has not heard so
)

_name, _, _times = os.environ.get("RUNLANE_KILL_AT", "").partition(":")
if _name and not (_name in KILL_POINTS and re.fullmatch("[1-9][0-9]{0,8}|", _times)):
    raise InvalidInputError(
        f"RUNLANE_KILL_AT: {_name!r} is none of {', '.join(KILL_POINTS)}, or {_times!r} no number"
    )
_remaining = int(_times or 1)


def kill_point(name: str) -> None:
    """Die here if the environment asks for it."""
    global _remaining  # noqa: PLW0603 (a countdown of this process)
    if name != _name:
        return
    _remaining -= 1
    if _remaining == 0:
        os.kill(os.getpid(), signal.SIGKILL)
