"""What belongs to the repository."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("producer", "worker", "journal", "observability")


def repository_files() -> Iterator[tuple[Path, str]]:
    """Yield every file that is committed or about to be, and its text."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout: nobody says which files belong to it")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in sorted(set(filter(None, listed.split("\0")))):
        path = ROOT / name
        if path.is_file():
            yield path, path.read_text("utf-8", errors="ignore")
