"""What can go wrong at a model provider, in words that fit every provider."""

from enum import StrEnum
from types import MappingProxyType
from typing import Final

from runlane.journal.errors import RunlaneError
from runlane.journal.wire.results import StopReason


class ModelErrorKind(StrEnum):
    """The kinds of failure that are treated differently."""

    CONTEXT_OVERFLOW = "context_overflow"
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    AUTHENTICATION = "authentication"
    PROVIDER_ERROR = "provider_error"


STOP_REASON_OF: Final = MappingProxyType(
    {
        ModelErrorKind.CONTEXT_OVERFLOW: StopReason.CONTEXT_OVERFLOW,
        ModelErrorKind.RATE_LIMIT: StopReason.RATE_LIMITED,
        ModelErrorKind.TIMEOUT: StopReason.PROVIDER_TIMEOUT,
        ModelErrorKind.AUTHENTICATION: StopReason.PROVIDER_AUTH,
        ModelErrorKind.PROVIDER_ERROR: StopReason.PROVIDER_ERROR,
    }
)


class ModelProviderError(RunlaneError):
    """The provider gave no complete response.

    The message never quotes the provider's own words: those may hold the prompt or the key.

    Attributes:
        kind: What sort of failure it is.
        status: HTTP status; None if there was none.
        code: The provider's short name of the error; None if it gave none.
        retry_after_s: Seconds that the provider asks to wait; None if it does not say.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ModelErrorKind = ModelErrorKind.PROVIDER_ERROR,
        status: int | None = None,
        code: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        self.kind = kind
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s
        super().__init__(message)

    @property
    def stop_reason(self) -> StopReason:
        """Why a run ends that dies of this error."""
        return STOP_REASON_OF[self.kind]
