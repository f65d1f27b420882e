"""Look at a server without changing anything on it."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import urlsplit

from redis.exceptions import RedisError, ResponseError

from runlane.journal import sentinel
from runlane.journal.archive import Archive, open_store
from runlane.journal.errors import ArchiveError
from runlane.journal.ownership import check_archive
from runlane.journal.partition import Partition
from runlane.journal.settings import Settings
from runlane.producer.diagnosis.facts import Facts, ReplicaFacts, SentinelFacts

CONFIG_NAMES: Final = (
    "appendfsync",
    "client-output-buffer-limit",
    "min-replicas-max-lag",
    "min-replicas-to-write",
    "no-appendfsync-on-rewrite",
    "save",
    "stream-node-max-bytes",
)
ARCHIVE_DEADLINE_S: Final = 3.0
HELLO: Final = "__sentinel__:hello"
"""Each Sentinel listens to this channel of the servers that it watches."""


async def examine(url: str, settings: Settings) -> Facts:
    """Return what can be seen of a server.

    Raises:
        InvalidInputError: The URL, or that of the archive, is none.
        ServerUnavailableError: The server, or every Sentinel, is away.
        ServerUnsuitableError: It refuses the credentials, or what every user of runlane needs.
    """
    archive = settings.archive and Archive(
        open_store(settings.archive), deadline_s=ARCHIVE_DEADLINE_S
    )
    partition = Partition(
        url,
        prefix=settings.prefix,
        retry_s=settings.retry_s,
        archive=archive or None,
    )
    try:
        info = _fields(await partition.call("INFO"))
        asked_at = time.time()
        seconds, micros = await partition.call("TIME")
        answered_at = time.time()
        now_s = int(seconds) + int(micros) / 1e6
        return Facts(
            url=without_credentials(url),
            prefix=settings.prefix,
            durability=settings.durability,
            archive=settings.archive and without_credentials(settings.archive),
            archive_fault=await _archive_fault(partition),
            version=_version(info),
            redis_version=info["redis_version"],
            mode=info.get("redis_mode", "standalone"),
            is_master=info["role"] == "master",
            replicas=_replicas(info),
            sentinel=await _ask_sentinels(url) if sentinel.is_sentinel(url) else None,
            sentinels_watching=await _listeners(partition),
            appendonly=info["aof_enabled"] == "1",
            append_failed=info.get("aof_last_write_status", "ok") != "ok",
            used_bytes=int(info["used_memory"]),
            limit_bytes=int(info["maxmemory"]),
            eviction=info["maxmemory_policy"],
            config=await _config(partition),
            can_wait=await _can_wait(partition),
            meta=_pairs(await partition.call("HGETALL", partition.keys.meta())),
            workers=await partition.call(
                "ZCOUNT", partition.keys.workers(), int(now_s * 1000), "+inf"
            ),
            skew_s=(asked_at + answered_at) / 2 - now_s,
            round_trip_s=answered_at - asked_at,
        )
    finally:
        await partition.close()


def without_credentials(url: str) -> str:
    """Return a URL as it may be shown."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _fields(info: bytes) -> dict[str, str]:
    lines = info.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def _pairs(words: list[bytes]) -> dict[str, str]:
    texts = [word.decode(errors="replace") for word in words]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _version(info: Mapping[str, str]) -> str:
    own = info.get("valkey_version")
    return f"valkey {own}" if own else f"redis {info['redis_version']}"


def _replicas(info: Mapping[str, str]) -> tuple[ReplicaFacts, ...]:
    found: list[ReplicaFacts] = []
    for number in range(int(info.get("connected_slaves", 0))):
        words = info.get(f"slave{number}", "").split(",")
        replica = dict(word.split("=", 1) for word in words if "=" in word)
        if replica:
            found.append(
                ReplicaFacts(
                    address=f"{replica['ip']}:{replica['port']}",
                    online=replica["state"] == "online",
                    lag_s=int(replica.get("lag", 0)),
                )
            )
    return tuple(found)


async def _archive_fault(partition: Partition) -> str | None:
    try:
        await check_archive(partition)
    except ArchiveError as error:
        return str(error)
    return None


async def _config(partition: Partition) -> dict[str, str] | None:
    """Ask for each value by its name: passwords are among the others."""
    calls = (partition.link.call("CONFIG", "GET", name) for name in CONFIG_NAMES)
    try:
        replies = await asyncio.gather(*calls)
    except ResponseError:
        return None
    return {name: value for reply in replies for name, value in _pairs(reply).items()}


async def _can_wait(partition: Partition) -> bool:
    try:
        await partition.link.call("PUBLISH", partition.keys.barrier(), "")
        await partition.link.call("WAIT", 0, 1)
    except ResponseError as error:
        return "replica" in str(error)  # it may, but not here
    return True


async def _listeners(partition: Partition) -> int | None:
    try:
        _, count = await partition.link.call("PUBSUB", "NUMSUB", HELLO)
    except ResponseError:
        return None
    return int(count)


async def _ask_sentinels(url: str) -> SentinelFacts:
    address = sentinel.parse(url)
    clients: list[Any] = sentinel.sentinel_clients(address)
    answers = await asyncio.gather(*(_ask_sentinel(client, address.master) for client in clients))
    answering = [answer for answer in answers if answer is not None]
    state, replicas, can_fail_over = answering[0] if answering else ({}, [], False)
    return SentinelFacts(
        named=len(answers),
        answering=len(answering),
        known=state.get("num-other-sentinels", -1) + 1,
        can_fail_over=can_fail_over,
        replicas=len(replicas),
        priorities=tuple(replica["slave-priority"] for replica in replicas),
        down_after_s=state.get("down-after-milliseconds", 0) / 1000,
    )


async def _ask_sentinel(
    client: Any, master: str
) -> tuple[dict[str, Any], list[dict[str, Any]], bool] | None:
    try:
        state = (await client.sentinel_masters())[master]
        replicas = cast("list[dict[str, Any]]", await client.sentinel_slaves(master))
        return state, replicas, await _agrees(client, master)
    except (RedisError, OSError, KeyError):
        return None
    finally:
        await client.aclose()


async def _agrees(client: Any, master: str) -> bool:
    try:
        await client.execute_command("SENTINEL", "CKQUORUM", master)
    except ResponseError:
        return False
    return True
