"""What survives what, in plain words; the figures were measured with Redis 7.0 and Valkey 9.1."""

from typing import Final

from msgspec import Struct

from runlane.producer.diagnosis.facts import Facts
from runlane.producer.diagnosis.levels import Verdict

_UNKNOWN: Final = "loses an unknown amount: CONFIG, and so appendfsync, is forbidden to this user"
_NO_MASTER: Final = "has nothing to lose here: a replica acknowledges no write"

_BARRIERS: Final = (
    "nothing that was answered to a submit or an abort, and no start, side-effecting call, tool "
    "result or end of a run"
)


class Promises(Struct, frozen=True):
    """What acknowledged writes survive.

    Attributes:
        process_crash: The server process dies.
        power_cut: The power fails, or the kernel crashes.
        failover: A replica is promoted.
        partition: The network splits.
    """

    process_crash: str
    power_cut: str
    failover: str
    partition: str


def promises_of(facts: Facts, verdict: Verdict) -> Promises:
    """Return what a configuration promises, never more than that."""
    if not facts.is_master:
        return Promises(*[_NO_MASTER] * len(Promises.__struct_fields__))
    crash, cut = _process_crash(facts), _power_cut(facts)
    if _has_failover(facts):
        crash = f"is a failover, unless the server is back before that: then it {crash}"
        cut = f"of the master's machine is a failover, too; one of all machines {cut}"
    return Promises(
        process_crash=crash,
        power_cut=cut,
        failover=_failover(facts, verdict),
        partition=_partition(facts, verdict),
    )


def _process_crash(facts: Facts) -> str:
    if facts.appendonly:
        return "loses nothing that was acknowledged"
    save = facts.setting("save")
    lost = "everything" if save == "" else "everything since the last snapshot, if there is one"
    if facts.replicas:
        return f"loses {lost}; if the server restarts before a failover, its replicas lose it too"
    return f"loses {lost}"


def _power_cut(facts: Facts) -> str:
    if not facts.appendonly:
        return _process_crash(facts)
    policy = facts.setting("appendfsync")
    if policy is None:
        return _UNKNOWN
    if policy == "no" or facts.setting("no-appendfsync-on-rewrite") == "yes":
        lost = "can lose about 30 s of acknowledged writes"
        return lost if policy == "no" else f"{lost} while the append-only file is rewritten"
    if policy == "everysec":
        return "can lose up to about 2 s of acknowledged writes"
    return "loses nothing, if the disk keeps what it says it has synced"


def _has_failover(facts: Facts) -> bool:
    if facts.sentinel is None:
        return bool(facts.sentinels_watching and facts.replicas)
    return facts.sentinel.can_fail_over and facts.online > 0


def _failover(facts: Facts, verdict: Verdict) -> str:
    if not _has_failover(facts):
        if facts.replicas:
            return "nobody is known to promote a replica; what it lacks then is lost"
        return "there is none: everything waits until this server is back"
    if verdict.level == "ha-all":
        return f"loses {_BARRIERS}, unless the master and every replica are lost at once"
    if verdict.level == "ha-acked":
        return (
            f"loses {_BARRIERS}, unless the replica that confirmed it is lost together with the "
            "master, or another one is promoted that lags"
        )
    return (
        "after a crash of the master usually loses nothing (0 of 10 crashes measured), at worst "
        "what the promoted replica lags behind"
    )


def _partition(facts: Facts, verdict: Verdict) -> str:
    if not _has_failover(facts):
        waiting = "clients that are cut off wait"
        if facts.replicas:
            return f"{waiting}; what a replica lacks that somebody promotes meanwhile is lost"
        return f"{waiting}; it loses nothing"
    if verdict.level == "ha-all":
        return f"loses {_BARRIERS}; while any replica is cut off, no write is accepted"
    if verdict.level == "ha-acked":
        return (
            f"loses {_BARRIERS}, unless the replica that confirmed it is on the master's side; "
            "what no barrier covers yet can be lost"
        )
    if int(facts.setting("min-replicas-to-write") or 0) > 0:
        lag_s = int(facts.setting("min-replicas-max-lag") or 0)
        return (
            f"can lose about {lag_s + 1} s of what a master acknowledged that is cut off; after "
            "that it refuses writes"
        )
    return (
        "can lose everything that a master acknowledged that is cut off, from the beginning "
        "until about 10 s after the end"
    )
