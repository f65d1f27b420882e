"""One scripted model and one server for all, a fleet and a client for each test."""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from pathlib import Path
from uuid import uuid4

import pytest
from tests.e2e.harness import Fleet, fleets

from runlane.journal.server import Server
from runlane.producer import Client, Settings
from runlane.worker.testing.process import scripted_model


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the workers' logs with a failure."""
    report = yield
    if report.failed:
        report.sections += [(f"workers of {fleet.prefix}", fleet.logs()) for fleet in fleets]
    return report


@pytest.fixture(scope="session")
def model() -> Iterator[Mapping[str, str]]:
    with scripted_model() as environment:
        yield environment


@pytest.fixture
def lease_ms() -> int:
    return 1500


@pytest.fixture
def fleet(
    server: Server, prefix: str, model: Mapping[str, str], tmp_path: Path, lease_ms: int
) -> Iterator[Fleet]:
    with Fleet(server.url, prefix, tmp_path, model, lease_ms) as opened:
        yield opened


@pytest.fixture
async def client(fleet: Fleet) -> AsyncIterator[Client]:
    settings = Settings(redis_url=fleet.url, prefix=fleet.prefix)
    async with await Client.connect(settings=settings) as connected:
        yield connected


@pytest.fixture(scope="module")
def crew(
    server: Server, model: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fleet]:
    """Two workers that serve all tests of a module, as long as none of them is harmed."""
    directory = tmp_path_factory.mktemp("crew")
    with Fleet(server.url, f"crew-{uuid4().hex[:8]}", directory, model) as opened:
        asyncio.run(opened.registered(opened.launch(), opened.launch()))
        yield opened
