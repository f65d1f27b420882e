"""running → running, for all runs of a worker at once."""

from collections.abc import Sequence
from typing import Any, cast

from msgspec import Struct
from redis import Redis
from redis.exceptions import NoScriptError

from runlane.journal.keys import Keys
from runlane.journal.lease import Lease
from runlane.journal.lua.scripts import load


class Renewal(Struct, frozen=True):
    """What a renewal brought.

    Attributes:
        lost: Ids of runs that this worker does not hold any more.
        aborted: Run id → reason, for runs that are to stop.
    """

    lost: tuple[str, ...]
    aborted: dict[str, str]


def renew(
    client: Redis, keys: Keys, *, worker_id: str, lease_ms: int, leases: Sequence[Lease]
) -> Renewal:
    """Extend leases; blocking, for a thread that a stuck event loop does not stop.

    Raises:
        redis.exceptions.RedisError: The server is away.
    """
    script = load("renew")
    execute = cast("Any", client).execute_command  # redis-py leaves it untyped
    args: list[Any] = [1, keys.root, worker_id, lease_ms]
    for lease in leases:
        args += [lease.run_id, lease.session_id, lease.branch_id, lease.queue, lease.fence]
    try:
        lost, aborted = execute("EVALSHA", script.sha, *args)
    except NoScriptError:
        lost, aborted = execute("EVAL", script.source, *args)
    words = [word.decode() for word in aborted]
    return Renewal(
        lost=tuple(run_id.decode() for run_id in lost),
        aborted=dict(zip(words[::2], words[1::2], strict=True)),
    )
