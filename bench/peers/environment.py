"""A virtual environment for each peer, made once and kept in the user's cache directory."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

_CACHE: Final = "runlane-bench"
_NEWEST_MINOR: Final = 20
_PROBE: Final = "import ensurepip, sys, venv; print(*sys.version_info[:2])"
_PROBE_TIMEOUT_S: Final = 30.0
_INSTALL_TIMEOUT_S: Final = 600.0


class PeerAbsentError(Exception):
    """A peer cannot be had on this machine; the message says why."""


class Needs(Struct, frozen=True):
    """What a peer needs.

    Attributes:
        module: Its side of the bench, started as `python -m`.
        packages: Exact requirements.
        python: The oldest version that runs them.
    """

    module: str
    packages: tuple[str, ...]
    python: tuple[int, int]


EJAGENT: Final = Needs("bench.peers.ejagent_jsonl", ("ejagent-core==0.6.0",), (3, 12))
EJAGENT_LOOP: Final = Needs(
    "bench.peers.ejagent_loop", ("ejagent-core==0.6.0", "uvloop==0.23.0"), (3, 12)
)
TADA_LOOP: Final = Needs("bench.peers.tada_loop", ("tada-core==0.7.2", "uvloop==0.23.0"), (3, 12))
LANGGRAPH: Final = Needs(
    "bench.peers.langgraph_savers",
    ("langgraph==1.2.24", "langgraph-checkpoint==4.3.2", "langgraph-checkpoint-sqlite==3.1.2"),
    (3, 11),
)


def environment_of(needs: Needs) -> Path:
    """Return the interpreter of a peer's environment, which is made if it is not there.

    Raises:
        PeerAbsentError: No Python is new enough, or the packages cannot be installed.
    """
    base = _interpreter(needs.python)
    name = hashlib.sha256(repr((str(base), needs)).encode()).hexdigest()[:16]
    folder = _cache() / name
    python = folder / "bin" / "python"
    complete = folder / "complete"
    if complete.exists():
        return python
    _run([str(base), "-m", "venv", "--clear", str(folder)], "no environment could be made for it")
    if needs.packages:
        install = [str(python), "-m", "pip", "install", "--quiet", *needs.packages]
        _run(install, f"`pip install {' '.join(needs.packages)}` failed")
    complete.touch()
    return python


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / _CACHE


def _interpreter(oldest: tuple[int, int]) -> Path:
    for candidate in _candidates(oldest[1]):
        if _version(candidate) >= oldest:
            return candidate
    raise PeerAbsentError(f"it needs Python {'.'.join(map(str, oldest))} or newer; none was found")


def _candidates(minor: int) -> Iterator[Path]:
    """Yield this interpreter, then those on PATH and of pyenv, nearest first.

    A shim of pyenv may lead nowhere.
    """
    yield Path(sys.executable)
    for newer in range(minor, _NEWEST_MINOR + 1):
        if found := shutil.which(f"python3.{newer}"):
            yield Path(found)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for newer in range(minor, _NEWEST_MINOR + 1):
        yield from sorted(pyenv.glob(f"versions/3.{newer}.*/bin/python"))


def _version(python: Path) -> tuple[int, ...]:
    """Return major and minor version; nothing if it cannot make environments."""
    found = subprocess.run(
        [python, "-c", _PROBE],
        check=False,
        capture_output=True,
        text=True,
        timeout=_PROBE_TIMEOUT_S,
    )
    return tuple(map(int, found.stdout.split())) if found.returncode == 0 else ()


def _run(command: list[str], failure: str) -> None:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S
    )
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise PeerAbsentError(failure)
