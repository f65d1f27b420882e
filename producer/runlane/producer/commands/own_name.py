"""What to type to get this command again."""

import shutil
import sys
from pathlib import Path


def own_name() -> str:
    """Return `runlane` if that is on PATH, else the way that this process was started."""
    if shutil.which("runlane"):
        return "runlane"
    script = Path(sys.argv[0])
    if script.name != "runlane":
        return "runlane"
    try:
        return str(script.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(script)
