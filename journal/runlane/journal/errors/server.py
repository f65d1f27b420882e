"""The Redis server."""

from runlane.journal.errors.base import RunlaneError


class ServerError(RunlaneError):
    """The Redis server."""


class ServerUnavailableError(ServerError, ConnectionError):
    """The server does not answer.

    Attributes:
        sent: Whether the request may have reached it.
    """

    def __init__(self, detail: str, *, sent: bool = False) -> None:
        self.sent = sent
        super().__init__(detail)


class SessionOutcomeUnknownError(ServerUnavailableError):
    """A transition was sent, and no reply came before the deadline: it may have happened."""

    def __init__(self, *, transition: str, request_id: str, detail: str) -> None:
        self.transition = transition
        self.request_id = request_id
        super().__init__(
            f"{transition} {request_id}: sent, but no reply came ({detail}). "
            "Send the same request again: it is recognised and happens once",
            sent=True,
        )


class DurabilityError(ServerError):
    """A transition was carried out, but too few replicas confirmed it: a failover may undo it.

    What was to follow from it must not be done yet.

    Attributes:
        replicas: How many replicas have it.
        needed: How many must, by the durability level.
    """

    def __init__(self, *, transition: str, request_id: str, replicas: int, needed: int) -> None:
        self.transition = transition
        self.request_id = request_id
        self.replicas = replicas
        self.needed = needed
        super().__init__(
            f"{transition} {request_id}: carried out, but confirmed by {replicas} replicas where "
            f"{needed} must: a failover may undo it. Send the same request again: it is "
            "recognised and happens once. `runlane doctor` says how the replicas are"
        )


class ServerUnsuitableError(ServerError):
    """The server answers, but cannot be used: version, password, mode or stored settings."""


class ServerLaunchError(ServerError):
    """No server could be started on this machine."""
