"""Settings of one process: one struct, read once, from RUNLANE_* and `.env`."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from dotenv import dotenv_values
from msgspec import Meta, Struct

from runlane.journal.errors import InvalidInputError
from runlane.journal.ids import check_prefix

KEEP_RUNS_S: Final = 2_592_000
COLD_S: Final = 3_600
BLOB_BYTES_MAX: Final = 64 * 1024 * 1024
Durability = Literal["local", "local-strict", "ha", "ha-acked", "ha-all"]
PositiveSeconds = Annotated[float, Meta(ge=0, le=86_400)]


class Settings(Struct, frozen=True, kw_only=True):
    """Every setting, with its default; the environment variable is `RUNLANE_<NAME>`.

    Attributes:
        redis_url: The server; None starts one of our own where that is offered.
        prefix: Separates deployments that share a server.
        data_dir: Where a server of our own keeps its data.
        retry_s: How long a client goes on trying to reach the server, in seconds.
        durability: What an acknowledged write is to survive; docs/durability.md says what each
            level promises, and `runlane doctor` whether the server keeps it.
        payload_bytes_max: The largest task or record, in bytes.
        blob_bytes_max: The largest tool result that is kept whole beside the journal, in bytes; of
            a larger one the rest is dropped.
        idempotency_s: How long an idempotency key is remembered, in seconds.
        archive: Where older records of sessions go: a directory or a URL of a store that every
            worker and client reaches; None keeps all of them in Redis.
        cold_s: After this long without a run all of a session's records go to the archive.
        keep_runs_s: How long an ended run is known by its id, in seconds; at least as long as
            its idempotency key. Its records stay with the session.
        keep_sessions_s: After this long without a run a session is deleted; 0 keeps it for ever.
        keep_dead_s: How long a dead letter is kept, in seconds.
        max_runs: Runs that one worker executes at once.
        lease_ms: How long a worker that went silent keeps its runs, in milliseconds.
        stall_limit_s: A worker whose event loop stands still this long gives its runs up.
        drain_timeout_s: How long a stopping worker lets runs reach a turn boundary.
        crashes_max: Crashes of a run without a record in between, before it ends as
            `worker_lost`.
        crashes_total_max: The same over the whole run.
        log_level: Least severe level that is logged.
        log_json: One JSON object per line rather than text for people.
    """

    redis_url: str | None = None
    prefix: str = "rl"
    data_dir: str = ".runlane"
    retry_s: PositiveSeconds = 30.0
    durability: Durability = "local"
    payload_bytes_max: Annotated[int, Meta(ge=1024, le=64 * 1024 * 1024)] = 4 * 1024 * 1024
    blob_bytes_max: Annotated[int, Meta(ge=1024 * 1024, le=256 * 1024 * 1024)] = BLOB_BYTES_MAX
    idempotency_s: Annotated[int, Meta(ge=1, le=31_536_000)] = 604_800
    archive: str | None = None
    cold_s: Annotated[int, Meta(ge=1, le=31_536_000)] = COLD_S
    keep_runs_s: Annotated[int, Meta(ge=1, le=315_360_000)] = KEEP_RUNS_S
    keep_sessions_s: Annotated[int, Meta(ge=0, le=315_360_000)] = 0
    keep_dead_s: Annotated[int, Meta(ge=1, le=315_360_000)] = 2_592_000
    max_runs: Annotated[int, Meta(ge=1, le=10_000)] = 100
    lease_ms: Annotated[int, Meta(ge=500, le=600_000)] = 15_000
    stall_limit_s: PositiveSeconds = 30.0
    drain_timeout_s: PositiveSeconds = 30.0
    crashes_max: Annotated[int, Meta(ge=1, le=100)] = 3
    crashes_total_max: Annotated[int, Meta(ge=1, le=1000)] = 10
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_json: bool = False

    def __post_init__(self) -> None:
        check_prefix(self.prefix)


_ENV_PREFIX: Final = "RUNLANE_"


def load_settings(environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Return the settings: `overrides` first, then the environment, then `.env`, then defaults.

    An empty variable counts as unset.

    Raises:
        InvalidInputError: A value is out of range; the message names the variable.
    """
    source = variables(environ)
    values: dict[str, Any] = {
        name: source[_ENV_PREFIX + name.upper()]
        for name in Settings.__struct_fields__
        if source.get(_ENV_PREFIX + name.upper())
    }
    values |= {name: value for name, value in overrides.items() if value is not None}
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"settings: {_naming_the_variable(str(error))}") from error


def variables(environ: Mapping[str, str] | None = None) -> Mapping[str, str | None]:
    """Return `environ`, or without one the environment and, for what is not set there, `.env`.

    Raises:
        InvalidInputError: `.env` is no text.
    """
    if environ is not None:
        return environ
    try:
        file = dotenv_values(".env") if Path(".env").is_file() else {}
    except UnicodeDecodeError as error:
        raise InvalidInputError(f".env is not UTF-8 text: {error}") from error
    return {**file, **os.environ}


def _naming_the_variable(message: str) -> str:
    text, _, path = message.partition(" - at `$.")
    return f"{_ENV_PREFIX}{path.rstrip('`').upper()}: {text}" if path else message
