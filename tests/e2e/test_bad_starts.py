"""A worker that cannot work says so in one line, and ends."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import pytest
from redis import Redis
from tests.conftest import bundled_binary
from tests.e2e.harness import ROOT, RUNLANE, environment

from runlane.journal.server import Server, launch

APP: Final = "tests.e2e.apps:app"
MODEL: Final = {
    "MODEL_URL": "http://127.0.0.1:9/v1",
    "MODEL_API_KEY": "k",
    "CHAT_MODEL": "m",
    "E2E_AGENTS": "clerk",
    "LEDGER": "/nowhere/ledger",
}
END_S: Final = 60.0


@dataclass(frozen=True)
class Ended:
    code: int
    output: str

    def says(self, code: int, *words: str) -> None:
        """Check that it ended with this code and one line of plain words."""
        assert self.code == code, self.output
        assert "Traceback" not in self.output
        for word in words:
            assert word in self.output
        told = [line for line in self.output.splitlines() if "rror: " in line]
        assert len(told) == 1, self.output


async def worker(app: str = APP, **variables: str) -> Ended:
    """Run a worker until it ends by itself."""
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, RUNLANE, "worker", app],
        cwd=ROOT,
        env=environment(**{"RUNLANE_REDIS_URL": "redis://127.0.0.1:9", **MODEL, **variables}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=END_S,
        text=True,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout)


@pytest.mark.parametrize(
    ("app", "words"),
    [
        ("tests.e2e.nowhere:app", ["does not import"]),
        ("tests.e2e.apps:nothing", ["found nothing"]),
        ("tests.e2e.apps:TOOLS", ["found tuple"]),
        ("tests.e2e.apps", ["package.module:app"]),
    ],
)
async def test_an_app_that_is_none_is_refused(app: str, words: list[str]) -> None:
    (await worker(app)).says(2, app.removesuffix(":app"), *words)


async def test_a_module_that_raises_at_import_is_refused_with_its_own_words() -> None:
    (await worker(E2E_AGENTS="no name")).says(2, "tests.e2e.apps", "InvalidInputError", "'no name'")


async def test_a_model_that_is_not_named_is_refused() -> None:
    (await worker(MODEL_URL="", CHAT_MODEL="")).says(2, "CHAT_MODEL, MODEL_URL")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("RUNLANE_LEASE_MS", "soon"),
        ("RUNLANE_LEASE_MS", "1"),
        ("RUNLANE_MAX_RUNS", "0"),
        ("RUNLANE_DRAIN_TIMEOUT_S", "-1"),
        ("RUNLANE_PREFIX", "a b"),
        ("RUNLANE_LOG_LEVEL", "loud"),
        ("RUNLANE_KILL_AT", "nowhere"),
        ("RUNLANE_KILL_AT", "after_claim:often"),
    ],
)
async def test_a_setting_that_is_none_is_refused_by_name(variable: str, value: str) -> None:
    (await worker(**{variable: value})).says(2, variable)


async def test_a_worker_without_a_server_is_refused() -> None:
    (await worker(RUNLANE_REDIS_URL="")).says(2, "RUNLANE_REDIS_URL is not set", "runlane dev")


@pytest.mark.parametrize(
    "url", ["localhost:6379", "http://:secret-word@127.0.0.1:9", "redis://:secret-word@[::1"]
)
async def test_an_address_that_is_none_is_refused_without_its_password(url: str) -> None:
    ended = await worker(RUNLANE_REDIS_URL=url)
    ended.says(2, "RUNLANE_REDIS_URL")
    assert "secret-word" not in ended.output


@pytest.fixture(scope="module")
def locked_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with launch(tmp_path_factory.mktemp("locked"), binary=bundled_binary()) as server:
        with Redis.from_url(server.url) as redis:
            cast("Any", redis).config_set("requirepass", "the-right-one")
        yield server


@pytest.mark.parametrize("password", ["", ":wrong-secret@", "nobody:wrong-secret@"])
async def test_a_wrong_password_is_refused_and_not_shown(
    locked_server: Server, password: str
) -> None:
    url = locked_server.url.replace("redis://", f"redis://{password}")
    ended = await worker(RUNLANE_REDIS_URL=url)
    ended.says(3, "refuses the credentials")
    assert "wrong-secret" not in ended.output
