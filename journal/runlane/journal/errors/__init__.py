"""What can go wrong, as one tree.

RunlaneError
├── InvalidInputError (ValueError)       the caller's value is refused; nothing was done
│   └── PayloadTooLargeError · JournalFormatError
├── UndecodableError                     stored bytes are damaged or of a newer version
│   └── RecordMissingError
├── NotFoundError (LookupError)
│   └── UnknownRunError · UnknownSessionError · UnknownBranchError · UnknownRecordError ·
│       UnknownAgentError · UnknownBlobError
├── RefusedError                         the state of the lane does not allow it; nothing was done
│   ├── IdempotencyConflictError · AgentMismatchError · ContinueRejectedError
│   ├── FollowUpRejectedError · SessionClosedError · BranchExistsError · LaneBusyError
│   ├── UnfinishedRunError · NotAncestorError · RetryRejectedError
│   ├── SessionExistsError · ImportLostError
│   └── SessionLockTimeoutError (TimeoutError)
├── WriteRefusedError                    a worker may not write; nothing was written
│   ├── ArchiverFencedError
│   └── SessionFencedError · SessionConflictError · SessionDivergedError · BlobMissingError
├── ServerError                          the Redis server
│   ├── ServerUnavailableError (ConnectionError) · SessionOutcomeUnknownError
│   ├── DurabilityError
│   └── ServerUnsuitableError · ServerLaunchError
├── ArchiveError                         the archive cannot be used
│   ├── ArchiveMissingError · ArchiveMismatchError
│   └── ArchiveDamagedError (UndecodableError)
├── ResultTimeoutError (TimeoutError)
└── AgentRunError                        a run did not complete
"""

from runlane.journal.errors.archive import (
    ArchiveDamagedError,
    ArchiveError,
    ArchiveMismatchError,
    ArchiveMissingError,
)
from runlane.journal.errors.base import (
    RunlaneError,
)
from runlane.journal.errors.outcomes import (
    AgentRunError,
    ResultTimeoutError,
)
from runlane.journal.errors.refusals import (
    AgentMismatchError,
    BranchExistsError,
    ContinueRejectedError,
    FollowUpRejectedError,
    IdempotencyConflictError,
    ImportLostError,
    LaneBusyError,
    NotAncestorError,
    RefusedError,
    RetryRejectedError,
    SessionClosedError,
    SessionExistsError,
    SessionLockTimeoutError,
    UnfinishedRunError,
)
from runlane.journal.errors.server import (
    DurabilityError,
    ServerError,
    ServerLaunchError,
    ServerUnavailableError,
    ServerUnsuitableError,
    SessionOutcomeUnknownError,
)
from runlane.journal.errors.values import (
    InvalidInputError,
    JournalFormatError,
    NotFoundError,
    PayloadTooLargeError,
    RecordMissingError,
    UndecodableError,
    UnknownAgentError,
    UnknownBlobError,
    UnknownBranchError,
    UnknownRecordError,
    UnknownRunError,
    UnknownSessionError,
)
from runlane.journal.errors.writes import (
    ArchiverFencedError,
    BlobMissingError,
    SessionConflictError,
    SessionDivergedError,
    SessionFencedError,
    WriteRefusedError,
)

__all__ = [
    "AgentMismatchError",
    "AgentRunError",
    "ArchiveDamagedError",
    "ArchiveError",
    "ArchiveMismatchError",
    "ArchiveMissingError",
    "ArchiverFencedError",
    "BlobMissingError",
    "BranchExistsError",
    "ContinueRejectedError",
    "DurabilityError",
    "FollowUpRejectedError",
    "IdempotencyConflictError",
    "ImportLostError",
    "InvalidInputError",
    "JournalFormatError",
    "LaneBusyError",
    "NotAncestorError",
    "NotFoundError",
    "PayloadTooLargeError",
    "RecordMissingError",
    "RefusedError",
    "ResultTimeoutError",
    "RetryRejectedError",
    "RunlaneError",
    "ServerError",
    "ServerLaunchError",
    "ServerUnavailableError",
    "ServerUnsuitableError",
    "SessionClosedError",
    "SessionConflictError",
    "SessionDivergedError",
    "SessionExistsError",
    "SessionFencedError",
    "SessionLockTimeoutError",
    "SessionOutcomeUnknownError",
    "UndecodableError",
    "UnfinishedRunError",
    "UnknownAgentError",
    "UnknownBlobError",
    "UnknownBranchError",
    "UnknownRecordError",
    "UnknownRunError",
    "UnknownSessionError",
    "WriteRefusedError",
]
