"""What all tests of the transitions together must have seen."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journal.recording import REACHED
from tests.upkeep.scripts import SCRIPTS as UPKEEP

from runlane.journal import lua
from runlane.journal.lua.scripts import load

FOLDER = Path(__file__).parent


@pytest.fixture(scope="session", autouse=True)
def every_code_of_every_script_is_reached(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    run = {item.path for item in request.session.items}
    if not run.issuperset(FOLDER.glob("test_*.py")) or request.config.getoption("keyword"):
        return  # somebody looks at a part
    names = {path.stem for path in Path(lua.__file__).parent.glob("*.lua")} - UPKEEP
    promised = {(name, code) for name in names for code in load(name).codes}
    assert promised - REACHED == set()
