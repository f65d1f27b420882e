"""Real servers, and a deployment of its own for each test."""

import os
import shutil
import signal
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from redis.asyncio import Redis
from xdist.scheduler import LoadScopeScheduling

from runlane.journal.link import client_for
from runlane.journal.partition import Partition
from runlane.journal.server import Server, find_binary, launch

# No test depends on the speed of the machine; where everything must pass, nothing is random.
settings.register_profile(
    "runlane",
    deadline=None,
    derandomize=bool(os.environ.get("RUNLANE_CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("runlane")


class ByFolder(LoadScopeScheduling):  # type: ignore[misc]  # xdist leaves it untyped
    """With -n, one process runs all tests of a folder: some look at what the others reached."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("/")[1]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder:
    return ByFolder(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[
    None, dict[str, Any] | None, dict[str, Any] | None
]:
    """With -n, what a test has printed must be text; some print lone surrogates on purpose."""
    data = yield
    if data is not None and "sections" in data:
        data["sections"] = [
            (name, text.encode(errors="backslashreplace").decode())
            for name, text in data["sections"]
        ]
    return data


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Children of a process that ignores SIGINT, as background jobs of a shell do, do so too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def bundled_binary() -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "")
        return find_binary()


def binary_named(name: str) -> Path:
    """Return a server binary; a missing one is a skip, or a failure where all must be there."""
    if name == "valkey":
        return bundled_binary()
    found = shutil.which(name)
    if found is None:
        missing = pytest.fail if os.environ.get("RUNLANE_CI") else pytest.skip
        missing(f"{name} is not on PATH; `make setup-ci` installs it")
    return Path(found)


@pytest.fixture(scope="session", params=["valkey", "redis-server"])
def any_binary(request: pytest.FixtureRequest) -> Path:
    """Each real server that runlane is tested with, in turn."""
    return binary_named(request.param)


@pytest.fixture(scope="session")
def bundled_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with launch(tmp_path_factory.mktemp("server"), binary=bundled_binary()) as running:
        yield running


@pytest.fixture(scope="session")
def server(bundled_server: Server) -> Server:
    """The server of a test that need not run on every one."""
    return bundled_server


@pytest.fixture(scope="session")
def any_server(any_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with launch(tmp_path_factory.mktemp("any_server"), binary=any_binary) as running:
        yield running


@pytest.fixture
def redis_url(server: Server) -> str:
    return server.url


@pytest.fixture
def prefix() -> str:
    return f"t-{uuid4().hex[:12]}"


@pytest.fixture
async def partition(redis_url: str, prefix: str) -> AsyncIterator[Partition]:
    opened = Partition(redis_url, prefix=prefix, retry_s=10)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    """A plain client, to look into the keyspace and to damage it."""
    async with client_for(redis_url) as client:
        yield client
