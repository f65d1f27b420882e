"""Ask for runs and follow them, from any service. Needs Redis; needs no model SDK."""

from runlane.journal.errors import (
    AgentMismatchError,
    AgentRunError,
    ContinueRejectedError,
    FollowUpRejectedError,
    IdempotencyConflictError,
    InvalidInputError,
    NotFoundError,
    PayloadTooLargeError,
    RefusedError,
    ResultTimeoutError,
    RunlaneError,
    ServerError,
    ServerUnavailableError,
    ServerUnsuitableError,
    SessionOutcomeUnknownError,
    UndecodableError,
    UnknownAgentError,
    UnknownRunError,
    UnknownSessionError,
)
from runlane.journal.settings import Settings
from runlane.journal.wire.control import ContinueRejectedReason, ControlReceipt, ControlStatus
from runlane.journal.wire.events import Event, EventKind
from runlane.journal.wire.jobs import FollowUpFailurePolicy
from runlane.journal.wire.results import AgentRunResult, RunStatus, RunUsage, StopReason
from runlane.producer.client import Client
from runlane.producer.handles import RunHandle
from runlane.producer.overview import SessionInfo, SessionStatus
from runlane.producer.runs import RunInfo, RunState
from runlane.producer.session import Session
from runlane.producer.sync import SyncClient, SyncRunHandle, SyncSession

__all__ = [
    "AgentMismatchError",
    "AgentRunError",
    "AgentRunResult",
    "Client",
    "ContinueRejectedError",
    "ContinueRejectedReason",
    "ControlReceipt",
    "ControlStatus",
    "Event",
    "EventKind",
    "FollowUpFailurePolicy",
    "FollowUpRejectedError",
    "IdempotencyConflictError",
    "InvalidInputError",
    "NotFoundError",
    "PayloadTooLargeError",
    "RefusedError",
    "ResultTimeoutError",
    "RunHandle",
    "RunInfo",
    "RunState",
    "RunStatus",
    "RunUsage",
    "RunlaneError",
    "ServerError",
    "ServerUnavailableError",
    "ServerUnsuitableError",
    "Session",
    "SessionInfo",
    "SessionOutcomeUnknownError",
    "SessionStatus",
    "Settings",
    "StopReason",
    "SyncClient",
    "SyncRunHandle",
    "SyncSession",
    "UndecodableError",
    "UnknownAgentError",
    "UnknownRunError",
    "UnknownSessionError",
]
