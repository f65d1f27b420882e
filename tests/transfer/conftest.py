"""The real ejagent-core, in an environment of its own."""

import glob
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROBE = Path(__file__).with_name("ejagent_probe.py")
NEEDED = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))"


class RealEjagent:
    """The library, asked through a process of its own Python."""

    def __init__(self, python: Path) -> None:
        self._python = python

    def ask(self, command: str, root: Path, *arguments: str) -> Any:
        """Return what a command of `ejagent_probe.py` says of the files in a folder."""
        done = subprocess.run(
            [self._python, PROBE, command, root, *arguments],
            capture_output=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)


def _pythons() -> Iterator[str]:
    yield sys.executable
    for name in ("python3.12", "python3.13", "python3.14", "python3"):
        yield shutil.which(name) or ""
    root = os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv"
    for versions in (Path(sys.base_prefix).parent, f"{root}/versions"):
        yield from sorted(glob.glob(f"{versions}/*/bin/python"))


def _suits(python: str) -> bool:
    if not python:
        return False
    return subprocess.run([python, "-c", NEEDED], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="session")
def ejagent(tmp_path_factory: pytest.TempPathFactory) -> RealEjagent:
    python = next(filter(_suits, _pythons()), None)
    if python is None:
        pytest.skip("ejagent-core needs a Python >= 3.12 with venv, on PATH or from pyenv")
    home = tmp_path_factory.mktemp("ejagent")
    subprocess.run([python, "-m", "venv", home], check=True)
    own = home / "bin" / "python"
    install = [str(own), "-m", "pip", "install", "-q", "ejagent-core==0.6.0"]
    done = subprocess.run(install, capture_output=True, check=False, timeout=600)
    if done.returncode:
        pytest.skip(f"pip cannot install ejagent-core: {done.stderr.decode()[-500:]}")
    return RealEjagent(own)
