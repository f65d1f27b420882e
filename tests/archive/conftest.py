"""A store of each kind."""

from pathlib import Path
from uuid import uuid4

import pytest

from runlane.journal.archive import ObjectStore, open_store


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    places = {"file": str(tmp_path / "deep" / "store"), "memory": f"memory://{uuid4().hex}/store"}
    return open_store(places[request.param])
