"""Answers to control calls."""

from enum import StrEnum

from msgspec import Struct


class ControlStatus(StrEnum):
    """Whether a control call was accepted, or why not."""

    ACCEPTED = "accepted"
    AGENT_IDLE = "agent_idle"
    QUEUE_FULL = "queue_full"
    RUN_CLOSING = "run_closing"
    RUN_FINISHED = "run_finished"


class ControlInputKind(StrEnum):
    """What an input is for."""

    STEERING = "steering"
    FOLLOW_UP = "follow_up"


class ControlInput(Struct, frozen=True, kw_only=True):
    """Something that was said to a run while it went on.

    Attributes:
        input_id: Its name, the same in the receipt and in the journal.
        kind: What it is for.
        content: What was said; not empty.
    """

    input_id: str
    kind: ControlInputKind
    content: str


class ContinueRejectedReason(StrEnum):
    """Why `continue_run` was refused."""

    AGENT_ACTIVE = "agent_active"
    AGENT_SHUTTING_DOWN = "agent_shutting_down"
    NO_PREVIOUS_RUN = "no_previous_run"
    UNSUPPORTED_STOP_REASON = "unsupported_stop_reason"
    INCOMPLETE_TOOL_STATE = "incomplete_tool_state"


class ControlReceipt(Struct, frozen=True):
    """The typed answer to a control call about one run.

    Attributes:
        run_id: The run; empty if none is active.
        status: Whether it was accepted, or why not.
        input_id: What an accepted input is called, here and in the journal; None otherwise.
        queue_size: Inputs that wait to be heard by the run; None for other control calls.
    """

    run_id: str
    status: ControlStatus
    input_id: str | None = None
    queue_size: int | None = None

    @property
    def accepted(self) -> bool:
        """Whether the call will have an effect, or has had it."""
        return self.status is ControlStatus.ACCEPTED
