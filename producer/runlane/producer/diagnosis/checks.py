"""What is right and wrong with a server and a deployment, and what to do about it. Pure."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from msgspec import Struct

from runlane.journal.partition import PARTITIONS, SCHEMA, VERSION_MIN
from runlane.producer.diagnosis.facts import Facts
from runlane.producer.diagnosis.levels import FALLBACKS, Verdict, obstacles_to

NODE_BYTES: Final = 16384
PUBSUB_BYTES_MAX: Final = 8 * 1024 * 1024
FILL_MAX: Final = 0.8
LAG_MAX_S: Final = 10
SKEW_MAX_S: Final = 1.0
SENTINELS_MIN: Final = 3


class Status(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Finding(Struct, frozen=True):
    """One thing that was looked at.

    Attributes:
        status: How bad it is.
        subject: What it is about.
        text: What is so.
        advice: What to do; empty if nothing is to be done.
    """

    status: Status
    subject: str
    text: str
    advice: str = ""


def check(facts: Facts, verdict: Verdict) -> list[Finding]:
    """Return all findings, by subject."""
    return [
        *_durability(facts, verdict),
        *_server(facts),
        *_memory(facts),
        *_archive(facts),
        *_streams(facts),
        *_subscribers(facts),
        *_replication(facts),
        *_sentinels(facts),
        *_deployment(facts),
    ]


def _durability(facts: Facts, verdict: Verdict) -> Iterator[Finding]:
    asked = f"RUNLANE_DURABILITY={facts.durability}"
    if not verdict.obstacles:
        kept_too = [
            level
            for level, fallbacks in FALLBACKS.items()
            if facts.durability in fallbacks and not any(obstacles_to(level, facts))
        ]
        more = f"; {' and '.join(kept_too)} would be kept too" if kept_too else ""
        yield Finding(Status.OK, "durability", f"{asked} is kept{more}")
    for obstacle in verdict.obstacles:
        kept = "is not kept" if obstacle.certain else "cannot be established"
        status = Status.ERROR if obstacle.certain else Status.WARNING
        yield Finding(status, "durability", f"{asked} {kept}: {obstacle.text}", obstacle.advice)


def _server(facts: Facts) -> Iterator[Finding]:
    numbers = [int(part) for part in facts.redis_version.split(".")[:2] if part.isdigit()]
    if tuple(numbers) < VERSION_MIN:
        yield Finding(
            Status.ERROR,
            "server",
            f"{facts.version} is too old",
            "use Redis 6.2 or newer, or Valkey",
        )
    elif facts.mode != "standalone":
        yield Finding(
            Status.ERROR,
            "server",
            f"it runs as {facts.mode}, which runlane does not serve",
            "use a single master, with Sentinel if it is to fail over",
        )
    else:
        yield Finding(Status.OK, "server", facts.version)
    if abs(facts.skew_s) > SKEW_MAX_S + facts.round_trip_s:
        side = "ahead of" if facts.skew_s > 0 else "behind"
        yield Finding(
            Status.WARNING,
            "clock",
            f"this host is {abs(facts.skew_s):.1f} s {side} the server",
            "synchronise both (NTP): runlane goes by the server's clock alone, but live events "
            "show the worker's",
        )
    else:
        yield Finding(Status.OK, "clock", "this host and the server agree")


def _memory(facts: Facts) -> Iterator[Finding]:
    if facts.eviction != "noeviction":
        yield Finding(
            Status.ERROR,
            "memory",
            f"maxmemory-policy is {facts.eviction}: a full server throws runs and records away",
            "CONFIG SET maxmemory-policy noeviction, and in the configuration file",
        )
    elif facts.limit_bytes and facts.used_bytes > FILL_MAX * facts.limit_bytes:
        full = facts.used_bytes > facts.limit_bytes
        yield Finding(
            Status.ERROR if full else Status.WARNING,
            "memory",
            f"{facts.used_bytes / facts.limit_bytes:.0%} of maxmemory are in use; a full server "
            "refuses new runs and records",
            "raise maxmemory, or move older records away by RUNLANE_ARCHIVE",
        )
    else:
        yield Finding(Status.OK, "memory", "nothing is evicted (noeviction)")


def _archive(facts: Facts) -> Iterator[Finding]:
    if facts.archive_fault is not None:
        yield Finding(Status.ERROR, "archive", facts.archive_fault)
    elif facts.archive is None:
        yield Finding(Status.OK, "archive", "off: all records stay in the server (RUNLANE_ARCHIVE)")
    else:
        yield Finding(
            Status.OK,
            "archive",
            f"older records go to {facts.archive} and are trimmed from the server; every worker "
            "and client must reach that very place",
        )


def _streams(facts: Facts) -> Iterator[Finding]:
    value = facts.setting("stream-node-max-bytes")
    if value is None:
        yield Finding(Status.WARNING, "streams", "stream-node-max-bytes is unknown")
    elif 0 < int(value) < NODE_BYTES:
        yield Finding(
            Status.WARNING,
            "streams",
            f"stream-node-max-bytes is {value}: journals take 8 to 27 % more memory than they need",
            f"CONFIG SET stream-node-max-bytes {NODE_BYTES}, and in the configuration file",
        )
    else:
        yield Finding(Status.OK, "streams", f"stream-node-max-bytes is {value}")


def _subscribers(facts: Facts) -> Iterator[Finding]:
    value = facts.setting("client-output-buffer-limit")
    if value is None:
        yield Finding(Status.WARNING, "subscribers", "client-output-buffer-limit is unknown")
        return
    hard = int(value.partition("pubsub ")[2].split(" ")[0])
    if 0 < hard <= PUBSUB_BYTES_MAX:
        yield Finding(
            Status.OK, "subscribers", f"a slow subscriber may hold {hard // 1024 // 1024} MiB"
        )
        return
    held = f"{hard // 1024 // 1024} MiB" if hard else "any amount"
    yield Finding(
        Status.WARNING,
        "subscribers",
        f"a slow subscriber may hold {held} of the server's memory; it needs no buffer, since it "
        "reads what it missed from the journal",
        'CONFIG SET client-output-buffer-limit "pubsub 8mb 2mb 10", and in the file',
    )


def _replication(facts: Facts) -> Iterator[Finding]:
    needed = int(facts.setting("min-replicas-to-write") or 0)
    if needed > facts.online:
        yield Finding(
            Status.ERROR,
            "replication",
            f"min-replicas-to-write is {needed}, and {facts.online} are in step: the server "
            "refuses every write",
            "bring the replicas back, or lower min-replicas-to-write",
        )
    for replica in facts.replicas:
        if not replica.online:
            yield Finding(
                Status.WARNING, "replication", f"replica {replica.address} is being filled"
            )
        elif replica.lag_s > LAG_MAX_S:
            yield Finding(
                Status.WARNING,
                "replication",
                f"replica {replica.address} was last heard of {replica.lag_s} s ago",
                "see its log and its network",
            )
        else:
            yield Finding(Status.OK, "replication", f"replica {replica.address} is in step")


def _sentinels(facts: Facts) -> Iterator[Finding]:
    watching = facts.sentinel
    if watching is None:
        if facts.sentinels_watching:
            yield Finding(
                Status.WARNING,
                "sentinel",
                f"{facts.sentinels_watching} Sentinels watch this server, but RUNLANE_REDIS_URL "
                "names the server itself: nobody follows it after a failover",
                "set it to redis+sentinel://host:26379,host:26379/<master name>/<db>",
            )
        return
    if watching.answering < watching.named:
        yield Finding(
            Status.WARNING,
            "sentinel",
            f"{watching.answering} of the {watching.named} Sentinels in RUNLANE_REDIS_URL answer",
            "start the others, or correct the URL",
        )
    if watching.known < SENTINELS_MIN:
        yield Finding(
            Status.WARNING,
            "sentinel",
            f"{watching.known} Sentinels know each other: losing one host can end all failovers",
            "run at least 3, each on a host of its own",
        )
    if len(set(watching.priorities)) > 1:
        yield Finding(
            Status.WARNING,
            "sentinel",
            "replicas have different priorities: one that lags may be promoted over one that "
            "confirmed",
            "give all the same replica-priority",
        )
    if facts.online < watching.replicas:
        yield Finding(
            Status.WARNING,
            "sentinel",
            f"{facts.online} of the {watching.replicas} replicas that Sentinel knows are in step",
            "start the others, or make Sentinel forget them by SENTINEL RESET <master name>",
        )
    if watching.can_fail_over:
        yield Finding(
            Status.OK,
            "sentinel",
            f"{watching.known} Sentinels can agree on a failover; a silent master counts as dead "
            f"after {watching.down_after_s:g} s",
        )


def _deployment(facts: Facts) -> Iterator[Finding]:
    made_with = {name: facts.meta.get(name) for name in ("schema", "partitions")}
    if not facts.meta:
        yield Finding(Status.OK, "deployment", f"prefix {facts.prefix} is not used yet")
    elif made_with != {"schema": SCHEMA, "partitions": PARTITIONS}:
        yield Finding(
            Status.ERROR,
            "deployment",
            f"prefix {facts.prefix} was made with schema {made_with['schema']} and "
            f"{made_with['partitions']} partitions; this runlane uses {SCHEMA} and {PARTITIONS}",
            "choose another RUNLANE_PREFIX, or the runlane that it was made with",
        )
    else:
        yield Finding(Status.OK, "deployment", f"prefix {facts.prefix} is of this runlane")
    if facts.workers:
        yield Finding(Status.OK, "workers", f"{facts.workers} live")
    else:
        yield Finding(
            Status.WARNING,
            "workers",
            "none is live: accepted runs wait",
            "start one by: runlane worker <package.module:attribute>",
        )
