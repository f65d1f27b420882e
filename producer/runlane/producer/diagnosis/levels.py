"""Which durability level a configuration keeps. Pure."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from runlane.journal.settings import Durability
from runlane.producer.diagnosis.facts import Facts

FALLBACKS: Final[Mapping[Durability, tuple[Durability, ...]]] = MappingProxyType(
    {
        "local": (),
        "local-strict": ("local",),
        "ha": ("local",),
        "ha-acked": ("ha", "local"),
        "ha-all": ("ha-acked", "ha", "local"),
    }
)
"""What is left of a level that is not kept, best first."""

GRANT_CONFIG: Final = "let this user read it: ACL SETUSER <user> +config|get"


class Obstacle(Struct, frozen=True):
    """Why a level is not kept.

    Attributes:
        text: What is so.
        advice: What to do about it.
        certain: False if it only cannot be established.
    """

    text: str
    advice: str
    certain: bool = True


class Verdict(Struct, frozen=True):
    """What a configuration gives.

    Attributes:
        level: The level that is asked for if it is kept, else what is left of it: a lower one,
            `none`, or `unknown` if even the lowest cannot be established.
        obstacles: Why it is not the one that is asked for.
    """

    level: str
    obstacles: tuple[Obstacle, ...]


def judge(facts: Facts) -> Verdict:
    """Return the level that the configuration gives: never more than is asked for."""
    obstacles = tuple(obstacles_to(facts.durability, facts))
    for level in (facts.durability, *FALLBACKS[facts.durability]):
        remaining = list(obstacles_to(level, facts))
        if not remaining:
            return Verdict(level, obstacles)
    unknown = not any(each.certain for each in obstacles_to("local", facts))
    return Verdict("unknown" if unknown else "none", obstacles)


def obstacles_to(level: Durability, facts: Facts) -> Iterator[Obstacle]:
    """Yield what keeps a configuration from giving a level."""
    if not facts.is_master:
        yield Obstacle(
            "the server is a replica: it refuses every write",
            "set RUNLANE_REDIS_URL to its master, or to its Sentinels",
        )
    if facts.append_failed:
        yield Obstacle(
            "the last write to the append-only file failed",
            "see the server's log, and whether its disk is full",
        )
    if not facts.appendonly:
        yield Obstacle(
            "the append-only file is off",
            "CONFIG SET appendonly yes, and the same in the configuration file of each server",
        )
    elif level == "local":
        yield from _obstacles_to_syncing(facts, ("everysec", "always"))
    elif level == "local-strict":
        yield from _obstacles_to_syncing(facts, ("always",))
        yield from _obstacles_to_steady_syncing(facts)
    if level.startswith("ha"):
        yield from _obstacles_to_failover(facts)
    if level in ("ha-acked", "ha-all") and not facts.can_wait:
        yield Obstacle(
            "this user may not ask for confirmations (WAIT, PUBLISH)",
            "ACL SETUSER <user> +wait +publish",
        )
    if level == "ha-all":
        yield from _obstacles_to_all(facts)


def _obstacles_to_syncing(facts: Facts, wanted: tuple[str, ...]) -> Iterator[Obstacle]:
    policy = facts.setting("appendfsync")
    if policy is None:
        yield Obstacle("appendfsync is unknown, since CONFIG is forbidden", GRANT_CONFIG, False)
    elif policy not in wanted:
        yield Obstacle(
            f"appendfsync is {policy}", f"CONFIG SET appendfsync {wanted[0]}, and in the file"
        )


def _obstacles_to_steady_syncing(facts: Facts) -> Iterator[Obstacle]:
    if facts.setting("no-appendfsync-on-rewrite") == "yes":
        yield Obstacle(
            "nothing is synced while the append-only file is rewritten",
            "CONFIG SET no-appendfsync-on-rewrite no, and in the file",
        )


def _obstacles_to_failover(facts: Facts) -> Iterator[Obstacle]:
    if not facts.online:
        yield Obstacle(
            "no replica is in step with the server",
            "start one by REPLICAOF <host> <port>, or see why those that there are lag",
        )
    if facts.sentinel is None:
        yield Obstacle(
            "RUNLANE_REDIS_URL names no Sentinels: whether anybody promotes a replica, and who "
            "follows it, cannot be seen from here",
            "set it to redis+sentinel://host:26379,host:26379/<master name>/<db>",
            certain=not facts.online,
        )
    elif not facts.sentinel.can_fail_over:
        yield Obstacle(
            f"too few Sentinels reach each other to agree on a failover ({facts.sentinel.known} "
            "are known)",
            "start those that are away, and see SENTINEL CKQUORUM <master name>",
        )


def _obstacles_to_all(facts: Facts) -> Iterator[Obstacle]:
    known = max(len(facts.replicas), facts.sentinel.replicas if facts.sentinel else 0)
    required = facts.setting("min-replicas-to-write")
    if required is None:
        yield Obstacle(
            "min-replicas-to-write is unknown, since CONFIG is forbidden", GRANT_CONFIG, False
        )
    elif int(required) < known:
        yield Obstacle(
            f"min-replicas-to-write is {required}, and there are {known} replicas: the server "
            "goes on without those that are cut off, and nobody waits for them",
            f"CONFIG SET min-replicas-to-write {known} on each server, and in the files",
        )
