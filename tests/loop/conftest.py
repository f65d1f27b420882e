"""A run without a server, and a world for its tools."""

import logging
from collections.abc import Iterator

import pytest
import structlog
from tests.loop.agents import World
from tests.loop.memory_run import Journal, MemoryRun


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def world(journal: Journal) -> World:
    return World(journal)


@pytest.fixture
def run(journal: Journal) -> MemoryRun:
    return MemoryRun(journal)


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    """Thousands of runs fail here on purpose; a traceback of each takes longer than the run."""
    before = structlog.get_config()["wrapper_class"]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(wrapper_class=before)
