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


class ContinueRejectedReason(StrEnum):
    """Why `continue_run` was refused."""

    AGENT_ACTIVE = "agent_active"
    AGENT_SHUTTING_DOWN = "agent_shutting_down"
    NO_PREVIOUS_RUN = "no_previous_run"
    UNSUPPORTED_STOP_REASON = "unsupported_stop_reason"
    INCOMPLETE_TOOL_STATE = "incomplete_tool_state"


class ControlReceipt(Struct, frozen=True):
    """The typed answer to a control call about one run."""

    run_id: str
    status: ControlStatus

    @property
    def accepted(self) -> bool:
        """Whether the call will have an effect, or has had it."""
        return self.status is ControlStatus.ACCEPTED
