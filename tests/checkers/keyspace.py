"""Everything that one deployment keeps on a server, read at rest."""

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, cast

from msgspec import Struct
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from runlane.journal.errors import UndecodableError
from runlane.journal.keys import Keys
from runlane.journal.wire.bodies import RunBody
from runlane.journal.wire.codec import decode_body
from runlane.journal.wire.records import AnyBody, RunQueued
from runlane.journal.wire.tree import BranchCreated, BranchIntent

PAGE: Final = 1000
ARQ_KINDS: Final = ("job", "in-progress", "result")
Hash = dict[str, bytes]
Read = Callable[[Any, str], Any]
READ: Final[dict[str, Read]] = {
    "hash": lambda pipe, key: pipe.hgetall(key),
    "zset": lambda pipe, key: pipe.zrange(key, 0, -1, withscores=True),
    "set": lambda pipe, key: pipe.smembers(key),
    "list": lambda pipe, key: pipe.lrange(key, 0, -1),
    "stream": lambda pipe, key: pipe.xrange(key, count=PAGE),
    "string": lambda pipe, key: pipe.get(key),
}


class Entry(Struct, frozen=True, kw_only=True):
    """One entry of a session's stream, as it is stored; `body` is None if it is damaged."""

    stream_id: str
    branch: str
    parent: str
    kind: str
    digest: str
    data: bytes
    body: AnyBody | None

    @property
    def record_id(self) -> str:
        return f"{self.stream_id}.{self.digest}"

    @property
    def revision(self) -> int:
        return revision_of(self.stream_id)


@dataclass
class Keyspace:
    """What `read_keyspace` found.

    Attributes:
        values: Kind of key ("run:", "meta") → what follows it in the key → value.
        arq: Run id → which of `ARQ_KINDS` exist for it.
        expiring: Ids of the runs whose hash has an expiry.
        faults: What could not be read.
    """

    keys: Keys
    values: dict[str, dict[str, Any]]
    arq: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    expiring: set[str] = field(default_factory=set[str])
    faults: list[str] = field(default_factory=list[str])

    @property
    def runs(self) -> dict[str, Hash]:
        return self.values["run:"]

    @property
    def lanes(self) -> dict[str, Hash]:
        return self.values["lane:"]

    @property
    def sessions(self) -> dict[str, Hash]:
        return self.values["s:"]

    @property
    def heads(self) -> dict[str, Hash]:
        return self.values["heads:"]

    @property
    def jumps(self) -> dict[str, Hash]:
        return self.values["jumps:"]

    @property
    def blobs(self) -> dict[str, Hash]:
        return self.values["blob:"]

    @property
    def logs(self) -> dict[str, list[Entry]]:
        return self.values["log:"]

    @property
    def queues(self) -> dict[str, dict[str, float]]:
        return self.values["q:"]

    @property
    def inboxes(self) -> dict[str, list[str]]:
        return self.values["inbox:"]

    @property
    def follow_ups(self) -> dict[str, list[str]]:
        return self.values["next:"]

    @property
    def steering(self) -> dict[str, list[str]]:
        return self.values["steer:"]

    @property
    def inputs(self) -> dict[str, str]:
        """Input id → run that accepted it, as far as that is remembered."""
        accepted = self.values["input:"].items()
        return {input_id: text(value).partition(" ")[0] for input_id, value in accepted}

    def run_text(self, run_id: str, name: str) -> str:
        return text(self.runs.get(run_id, {}).get(name, b""))

    def lane_text(self, lane: str, name: str) -> str:
        return text(self.lanes.get(lane, {}).get(name, b""))

    def lane_of(self, run_id: str) -> str:
        return f"{self.run_text(run_id, 'session')}/{self.run_text(run_id, 'branch')}"

    def trimmed(self, session: str) -> int:
        """Return the last revision that only the archive has; 0 if the stream has all."""
        return int(self.sessions.get(session, {}).get("trimmed", b"0"))

    def is_trimmed(self, session: str, record_id: str) -> bool:
        """Return whether the stream has no more the record that an id names."""
        return 0 < revision_of(record_id) <= self.trimmed(session)

    def imported(self, session: str) -> set[str]:
        """Return the runs that came with an imported session: they have records, and no hash."""
        if "imported" not in self.sessions.get(session, {}):
            return set()
        bodies = [entry.body for entry in self.logs.get(session, [])]
        queued = {body.run_id for body in bodies if isinstance(body, RunQueued)}
        return {body.run_id for body in bodies if isinstance(body, RunBody)} - queued

    def set_aside(self, session: str) -> set[str]:
        """Return the stream ids of records that a server had lost: their runs went on elsewhere."""
        entries = self.logs.get(session, [])
        queued = [entry.body for entry in entries if isinstance(entry.body, RunQueued)]
        own = {(body.branch_id, body.run_id) for body in queued}
        lost = {
            entry.branch
            for entry in entries
            if isinstance(entry.body, BranchCreated) and entry.body.intent is BranchIntent.LOST
        }
        return {
            entry.stream_id
            for entry in entries
            if entry.branch in lost
            and isinstance(entry.body, RunBody)
            and (entry.branch, entry.body.run_id) not in own
        }

    def is_hold(self, run_id: str) -> bool:
        """Return whether a run only keeps a lane: it has no records."""
        return self.run_text(run_id, "intent") == "hold"

    def first_revision(self, session: str) -> int:
        """Return the number of the first record in the stream."""
        deleted = self.values["deleted"].get("", {}).get(session, b"0")
        return max(self.trimmed(session), int(deleted)) + 1


def revision_of(record_id: str) -> int:
    """Return the number of a record; 0 for what is no id."""
    number = record_id.partition("-")[0]
    return int(number) if number.isdecimal() else 0


def text(value: bytes) -> str:
    return value.decode(errors="backslashreplace")


@cache
def kinds_of(keys: Keys) -> dict[str, str]:
    """Return kind of key → Redis type, as the key functions and their docstrings say."""
    kinds: dict[str, str] = {}
    for name, function in inspect.getmembers(Keys, inspect.isfunction):
        if name.startswith("_"):
            continue
        words = [""] * (len(inspect.signature(function).parameters) - 1)
        kind, _ = _split(keys, cast("str", function(keys, *words)))
        kinds[kind] = (function.__doc__ or "").replace(":", " ").split()[0].lower()
    return {kind: type_ for kind, type_ in kinds.items() if type_ != "channel"}


async def read_keyspace(redis: Redis, prefix: str) -> Keyspace:
    """Read every key of the prefix. Nobody may write meanwhile."""
    keys = Keys.of(prefix)
    kinds = kinds_of(keys)
    space = Keyspace(keys, {kind: {} for kind in kinds})
    found: list[tuple[str, str, str]] = []
    scan: AsyncIterator[bytes] = cast("Any", redis).scan_iter(match=f"{prefix}:*", count=PAGE)
    async for raw in scan:
        key = text(raw)
        kind, name = _split(keys, key)
        if kind in kinds:
            found.append((kind, name, key))
        else:
            space.faults.append(f"key {key} is of no known kind")
    reads = [(READ[kinds[kind]], key) for kind, _, key in found]
    async for index, reply in _pipelined(redis, reads):
        kind, name, key = found[index]
        if isinstance(reply, ResponseError):
            space.faults.append(f"key {key} is no {kinds[kind]}: {reply}")
        elif kind == "log:":
            space.values[kind][name] = await _read_log(redis, space, key, reply)
        elif reply:  # else it expired just now
            space.values[kind][name] = _decoded(kinds[kind], reply)
    await _read_arq(redis, space)
    await _read_expiry(redis, space)
    return space


def _split(keys: Keys, key: str) -> tuple[str, str]:
    kind, colon, name = key.removeprefix(f"{keys.root}:").partition(":")
    return (kind + colon, name) if key.startswith(f"{keys.root}:") else ("", key)


def _decoded(type_: str, reply: Any) -> Any:
    match type_:
        case "hash":
            return {text(name): value for name, value in reply.items()}
        case "zset":
            return {text(member): score for member, score in reply}
        case "set" | "list":
            return [text(member) for member in reply]
        case _:
            return reply


async def _read_log(redis: Redis, space: Keyspace, key: str, page: Any) -> list[Entry]:
    entries = [_entry(space, key, *item) for item in page]
    while len(page) == PAGE:
        page = await redis.xrange(key, min=f"({entries[-1].stream_id}", count=PAGE)
        entries += [_entry(space, key, *item) for item in page]
    return entries


def _entry(space: Keyspace, key: str, raw_id: bytes, fields: dict[bytes, bytes]) -> Entry:
    stream_id, kind = text(raw_id), text(fields.get(b"k", b""))
    data = fields.get(b"d", b"")
    body = None
    try:
        body = decode_body(kind, data)
    except UndecodableError as error:
        space.faults.append(f"{key} {stream_id}: {error}")
    return Entry(
        stream_id=stream_id,
        branch=text(fields.get(b"b", b"")),
        parent=text(fields.get(b"p", b"")),
        kind=kind,
        digest=text(fields.get(b"h", b"")),
        data=data,
        body=body,
    )


async def _read_arq(redis: Redis, space: Keyspace) -> None:
    names = [(run_id, kind) for run_id in space.runs for kind in ARQ_KINDS]
    space.arq = {run_id: set() for run_id in space.runs}
    reads: list[tuple[Read, str]] = [
        (lambda pipe, key: pipe.exists(key), f"arq:{kind}:{run_id}") for run_id, kind in names
    ]
    async for index, exists in _pipelined(redis, reads):
        if exists:
            run_id, kind = names[index]
            space.arq[run_id].add(kind)


async def _read_expiry(redis: Redis, space: Keyspace) -> None:
    run_ids = list(space.runs)
    reads: list[tuple[Read, str]] = [
        (lambda pipe, key: pipe.pttl(key), space.keys.run(run_id)) for run_id in run_ids
    ]
    async for index, left_ms in _pipelined(redis, reads):
        if left_ms >= 0:
            space.expiring.add(run_ids[index])


async def _pipelined(
    redis: Redis, reads: Sequence[tuple[Read, str]]
) -> AsyncIterator[tuple[int, Any]]:
    for start in range(0, len(reads), PAGE):
        async with redis.pipeline(transaction=False) as pipe:
            for read, key in reads[start : start + PAGE]:
                read(pipe, key)
            replies = await pipe.execute(raise_on_error=False)
        for index, reply in enumerate(replies, start):
            yield index, reply
