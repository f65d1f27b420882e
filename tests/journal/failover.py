"""A failover that loses what was acknowledged since a moment, on one server."""

from typing import Any, cast

from msgspec import Struct
from redis.asyncio import Redis


class Snapshot(Struct, frozen=True):
    """Every key of a database: name, time to live in ms (0 for none), value."""

    values: list[tuple[bytes, int, bytes]]


async def take_snapshot(redis: Redis) -> Snapshot:
    """Return the whole database as of now."""
    client = cast("Any", redis)
    values: list[tuple[bytes, int, bytes]] = []
    for key in sorted([key async for key in client.scan_iter(count=1000)]):
        value = await client.dump(key)
        if value is not None:
            values.append((key, max(await client.pttl(key), 0), value))
    return Snapshot(values)


async def fail_over(redis: Redis, snapshot: Snapshot) -> None:
    """Go back to a snapshot, as a replica does that had got so far when it was promoted."""
    client = cast("Any", redis)
    await client.flushall()
    for key, ttl, value in snapshot.values:
        await client.restore(key, ttl, value)
    await client.execute_command("REPLICAOF", "127.0.0.1", 1)
    await client.execute_command("REPLICAOF", "NO", "ONE")  # a new replication id
