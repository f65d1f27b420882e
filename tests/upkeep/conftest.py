"""A deployment with an archive, alone on each real server in turn."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from tests.journal.driving import Driver, open_driver
from tests.journal.recording import REACHED
from tests.upkeep.scripts import SCRIPTS
from tests.upkeep.support import Keeper

from runlane.journal.archive import Archive, FileStore
from runlane.journal.lua.scripts import load
from runlane.journal.server import Server

FOLDER = Path(__file__).parent


@pytest.fixture(scope="session")
def server(any_server: Server) -> Server:
    return any_server


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The folder of the archive."""
    return tmp_path / "archive"


@pytest.fixture
async def driver(redis_url: str, prefix: str, redis: Redis, store: Path) -> AsyncIterator[Driver]:
    await redis.flushall()
    async with open_driver(redis_url, prefix=prefix) as opened:
        opened.partition.archive = Archive(FileStore(store))
        yield opened


@pytest.fixture
def keeper(driver: Driver, store: Path) -> Keeper:
    return Keeper(driver, store)


@pytest.fixture(scope="session", autouse=True)
def every_code_of_these_scripts_is_reached(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    run = {item.path for item in request.session.items}
    if not run.issuperset(FOLDER.glob("test_*.py")) or request.config.getoption("keyword"):
        return  # somebody looks at a part
    promised = {(name, code) for name in SCRIPTS for code in load(name).codes}
    assert promised - REACHED == set()
