"""A worker that cannot work says so in one line, and ends. Each bad start is a case."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import pytest
from msgspec import Struct
from redis import Redis
from tests.conftest import bundled_binary
from tests.e2e.harness import ROOT, RUNLANE, environment

from runlane.journal.server import launch

END_S: Final = 60.0
AT_ONCE: Final = 3
LOCKED: Final = "<locked>"
SECRET: Final = "secret-word"
GOOD: Final = {
    "MODEL_URL": "http://127.0.0.1:9/v1",
    "MODEL_API_KEY": "k",
    "CHAT_MODEL": "m",
    "E2E_AGENTS": "clerk",
    "LEDGER": "/nowhere/ledger",
    "RUNLANE_REDIS_URL": "redis://127.0.0.1:9",
}


class Bad(Struct, frozen=True):
    """A way to start a worker, what it must exit with, and what it must say.

    `LOCKED` in a variable stands for host and port of a server that wants a password.
    """

    code: int
    words: list[str]
    app: str = "tests.e2e.apps:app"
    variables: dict[str, str] = {}


def setting(variable: str, value: str) -> Bad:
    return Bad(2, [variable], variables={variable: value})


def address(url: str, code: int, *words: str) -> Bad:
    return Bad(code, [*words], variables={"RUNLANE_REDIS_URL": url})


CASES: Final = {
    "no such module": Bad(2, ["'tests.e2e.nowhere' does not import"], "tests.e2e.nowhere:app"),
    "no such attribute": Bad(2, ["'tests.e2e.apps:no'", "found nothing"], "tests.e2e.apps:no"),
    "no app": Bad(2, ["'tests.e2e.apps:TOOLS'", "found tuple"], "tests.e2e.apps:TOOLS"),
    "no attribute": Bad(2, ["'tests.e2e.apps'", "package.module:app"], "tests.e2e.apps"),
    "module that raises": Bad(
        2, ["tests.e2e.apps", "InvalidInputError", "'a b'"], variables={"E2E_AGENTS": "a b"}
    ),
    "no model": Bad(2, ["not set: CHAT_MODEL"], variables={"CHAT_MODEL": ""}),
    "no server": address("", 2, "RUNLANE_REDIS_URL is not set", "runlane dev"),
    "lease in words": setting("RUNLANE_LEASE_MS", "soon"),
    "lease too short": setting("RUNLANE_LEASE_MS", "1"),
    "no slots": setting("RUNLANE_MAX_RUNS", "0"),
    "negative time": setting("RUNLANE_DRAIN_TIMEOUT_S", "-1"),
    "prefix with a space": setting("RUNLANE_PREFIX", "a b"),
    "log level": setting("RUNLANE_LOG_LEVEL", "loud"),
    "kill point": setting("RUNLANE_KILL_AT", "nowhere"),
    "count of a kill point": setting("RUNLANE_KILL_AT", "after_claim:often"),
    "address without scheme": address("localhost:6379", 2, "RUNLANE_REDIS_URL"),
    "address with http": address(f"http://:{SECRET}@127.0.0.1:9", 2, "RUNLANE_REDIS_URL"),
    "address cut off": address(f"redis://:{SECRET}@[::1", 2, "RUNLANE_REDIS_URL"),
    "no password": address(f"redis://{LOCKED}", 3, "refuses the credentials"),
    "wrong password": address(f"redis://:{SECRET}@{LOCKED}", 3, "refuses the credentials"),
    "wrong user": address(f"redis://nobody:{SECRET}@{LOCKED}", 3, "refuses the credentials"),
}


class Ended(Struct, frozen=True):
    code: int
    output: str


async def _start(case: Bad, locked: str, slots: asyncio.Semaphore) -> Ended:
    variables = {name: value.replace(LOCKED, locked) for name, value in case.variables.items()}
    async with slots:
        ended = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, RUNLANE, "worker", case.app],
            cwd=ROOT,
            env=environment(**{**GOOD, **variables}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=END_S,
            text=True,
            check=False,
        )
    return Ended(ended.returncode, ended.stdout)


async def _start_all(locked: str) -> Mapping[str, Ended | BaseException]:
    slots = asyncio.Semaphore(AT_ONCE)
    starts = [_start(case, locked, slots) for case in CASES.values()]
    return dict(zip(CASES, await asyncio.gather(*starts, return_exceptions=True), strict=True))


@pytest.fixture(scope="module")
def ends(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Mapping[str, Ended | BaseException]]:
    """How each case ended; they run side by side."""
    with launch(tmp_path_factory.mktemp("locked"), binary=bundled_binary()) as server:
        with Redis.from_url(server.url) as redis:
            cast("Any", redis).config_set("requirepass", "the-right-one")
        yield asyncio.run(_start_all(server.url.removeprefix("redis://")))


@pytest.mark.parametrize("name", CASES)
def test_a_bad_start_is_explained_in_one_line(
    ends: Mapping[str, Ended | BaseException], name: str
) -> None:
    ended, case = ends[name], CASES[name]
    assert isinstance(ended, Ended), ended
    assert ended.code == case.code, ended.output
    told = [line for line in ended.output.splitlines() if line.lower().startswith("error: ")]
    assert len(told) == 1, ended.output
    for word in case.words:
        assert word in told[0]
    assert "Traceback" not in ended.output
    assert SECRET not in ended.output
