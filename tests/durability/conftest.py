"""A master and two replicas, of each real server in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.durability.replicas import replica_set

from runlane.journal.server import Server


@pytest.fixture(scope="package")
def trio(any_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    """A master, first in the list, and two replicas that tests may stop and let go on."""
    with replica_set(tmp_path_factory.mktemp("trio"), binary=any_binary, replicas=2) as servers:
        yield servers
