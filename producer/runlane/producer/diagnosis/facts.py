"""What `runlane doctor` has seen; what it was not allowed to see is None."""

from collections.abc import Mapping

from msgspec import Struct

from runlane.journal.settings import Durability


class ReplicaFacts(Struct, frozen=True, kw_only=True):
    """A replica, as its master sees it.

    Attributes:
        address: Host and port.
        online: Whether it is in step, rather than being filled.
        lag_s: How long ago it was heard of, in seconds.
    """

    address: str
    online: bool
    lag_s: int


class SentinelFacts(Struct, frozen=True, kw_only=True):
    """The Sentinels that the URL names.

    Attributes:
        named: How many the URL names.
        answering: How many of those answer.
        known: How many watch this master, as one of them says.
        can_fail_over: Whether enough of them reach each other to agree on a failover.
        replicas: How many replicas they know, reachable or not.
        priorities: Of these replicas; the lowest is promoted first, whatever it lacks.
        down_after_s: After this long without an answer the master counts as dead, in seconds.
    """

    named: int
    answering: int
    known: int
    can_fail_over: bool
    replicas: int
    priorities: tuple[int, ...]
    down_after_s: float


class Facts(Struct, frozen=True, kw_only=True):
    """A server and a deployment on it.

    Attributes:
        url: The server, without credentials.
        prefix: The deployment.
        durability: The level that is asked for.
        archive: Where older records go, without credentials; None if all of them stay.
        archive_fault: Why that is not the archive of this deployment; None if nothing is wrong.
        version: For example "valkey 9.1.2"; Valkey also says which Redis it is like.
        redis_version: That Redis, or the server itself.
        mode: `standalone`, `cluster` or `sentinel`.
        is_master: Whether it accepts writes.
        replicas: Those that are connected.
        sentinel: None if the URL names a server.
        sentinels_watching: How many Sentinels listen on the server, whatever the URL names.
        appendonly: Whether the append-only file is on.
        append_failed: Whether the last write to it failed.
        used_bytes: Memory in use.
        limit_bytes: Memory that it may use; 0 without a limit.
        eviction: What it does at the limit.
        config: Names and values of its configuration; None if CONFIG is forbidden.
        can_wait: Whether this user may ask for confirmations.
        meta: What the deployment was made with; empty before its first use.
        workers: Workers that are live.
        skew_s: How far the clock of this host is ahead of the server's, in seconds.
        round_trip_s: How long the server took to say so: the skew is known no better than that.
    """

    url: str
    prefix: str
    durability: Durability
    archive: str | None
    archive_fault: str | None = None
    version: str
    redis_version: str
    mode: str
    is_master: bool
    replicas: tuple[ReplicaFacts, ...]
    sentinel: SentinelFacts | None
    sentinels_watching: int | None
    appendonly: bool
    append_failed: bool
    used_bytes: int
    limit_bytes: int
    eviction: str
    config: Mapping[str, str] | None
    can_wait: bool
    meta: Mapping[str, str]
    workers: int
    skew_s: float
    round_trip_s: float

    @property
    def online(self) -> int:
        """How many replicas are in step."""
        return sum(replica.online for replica in self.replicas)

    def setting(self, name: str) -> str | None:
        """Return a value of the configuration; None if it cannot be known."""
        return None if self.config is None else self.config.get(name)
