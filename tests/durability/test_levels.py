"""Which level a configuration keeps, and what is wrong with it: cases that no test server is in."""

from typing import Any

import pytest
from msgspec.structs import replace

from runlane.producer.diagnosis import (
    Facts,
    ReplicaFacts,
    SentinelFacts,
    Status,
    check,
    judge,
    promises_of,
)

REPLICA = ReplicaFacts(address="r:6379", online=True, lag_s=0)
SENTINEL = SentinelFacts(
    named=3,
    answering=3,
    known=3,
    can_fail_over=True,
    replicas=2,
    priorities=(100, 100),
    down_after_s=5,
)
CONFIG = {
    "appendfsync": "everysec",
    "no-appendfsync-on-rewrite": "no",
    "client-output-buffer-limit": "normal 0 0 0 slave 1 1 60 pubsub 8388608 2097152 10",
    "stream-node-max-bytes": "16384",
    "min-replicas-to-write": "2",
    "min-replicas-max-lag": "10",
}
GOOD = Facts(
    url="redis+sentinel://s:26379/m/0",
    prefix="rl",
    durability="ha-all",
    archive=None,
    version="valkey 9.1.2",
    redis_version="7.2.4",
    mode="standalone",
    is_master=True,
    replicas=(REPLICA, REPLICA),
    sentinel=SENTINEL,
    sentinels_watching=3,
    appendonly=True,
    append_failed=False,
    used_bytes=1,
    limit_bytes=0,
    eviction="noeviction",
    config=CONFIG,
    can_wait=True,
    meta={"schema": "1", "partitions": "1"},
    workers=1,
    skew_s=0.0,
    round_trip_s=0.001,
)


def test_where_all_is_well_there_is_nothing_but_ok() -> None:
    verdict = judge(GOOD)
    assert verdict.level == "ha-all"
    assert {finding.status for finding in check(GOOD, verdict)} == {Status.OK}


@pytest.mark.parametrize(
    ("change", "level"),
    [
        ({}, "ha-all"),
        ({"config": {**CONFIG, "min-replicas-to-write": "1"}}, "ha-acked"),
        ({"config": None}, "ha-acked"),
        ({"replicas": (REPLICA,)}, "ha-all"),
        ({"can_wait": False}, "ha"),
        ({"replicas": ()}, "local"),
        ({"replicas": (replace(REPLICA, online=False),)}, "local"),
        ({"sentinel": None}, "local"),
        ({"sentinel": replace(SENTINEL, can_fail_over=False)}, "local"),
        ({"replicas": (), "config": None}, "unknown"),
        ({"replicas": (), "config": {**CONFIG, "appendfsync": "no"}}, "none"),
        ({"appendonly": False}, "none"),
        ({"append_failed": True}, "none"),
        ({"is_master": False}, "none"),
    ],
    ids=str,
)
def test_a_level_is_never_higher_than_everything_that_it_needs(
    change: dict[str, Any], level: str
) -> None:
    facts = replace(GOOD, **change)
    verdict = judge(facts)
    assert verdict.level == level
    assert bool(verdict.obstacles) == (level != "ha-all")


@pytest.mark.parametrize("durability", ["local", "local-strict", "ha", "ha-acked", "ha-all"])
def test_a_level_is_never_higher_than_what_is_asked_for(durability: Any) -> None:
    config = {**CONFIG, "appendfsync": "always"}
    assert judge(replace(GOOD, durability=durability, config=config)).level == durability


def test_confirmations_are_promised_only_where_somebody_waits_for_them() -> None:
    """The server is the same: whether a caller waits is the setting's to say."""
    plain = replace(GOOD, durability="ha")
    assert "no barrier" not in promises_of(plain, judge(plain)).partition
    assert "about 11 s" in promises_of(plain, judge(plain)).partition
    assert "while any replica is cut off" in promises_of(GOOD, judge(GOOD)).partition


@pytest.mark.parametrize(
    ("change", "status", "subject", "text"),
    [
        ({"skew_s": 2.5}, "warning", "clock", "2.5 s ahead of the server"),
        ({"skew_s": -9.0}, "warning", "clock", "9.0 s behind"),
        ({"redis_version": "6.0.16"}, "error", "server", "too old"),
        ({"mode": "cluster"}, "error", "server", "cluster"),
        ({"meta": {"schema": "1", "partitions": "4"}}, "error", "deployment", "4 partitions"),
        ({"archive": "s3://bucket"}, "ok", "archive", "trimmed"),
        ({"replicas": (replace(REPLICA, lag_s=60),)}, "warning", "replication", "60 s ago"),
        ({"sentinel": replace(SENTINEL, known=2)}, "warning", "sentinel", "losing one host"),
        ({"sentinel": replace(SENTINEL, answering=1)}, "warning", "sentinel", "1 of the 3"),
        ({"sentinel": replace(SENTINEL, replicas=3)}, "warning", "sentinel", "2 of the 3"),
        (
            {"sentinel": replace(SENTINEL, priorities=(1, 100))},
            "warning",
            "sentinel",
            "different priorities",
        ),
        (
            {"config": {**CONFIG, "client-output-buffer-limit": "pubsub 0 0 0"}},
            "warning",
            "subscribers",
            "any amount",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(
    change: dict[str, Any], status: str, subject: str, text: str
) -> None:
    facts = replace(GOOD, **change)
    found = [
        finding
        for finding in check(facts, judge(facts))
        if (finding.status, finding.subject) == (status, subject)
    ]
    assert any(text in finding.text for finding in found), found
    assert all(finding.advice for finding in found) or status == "ok"
