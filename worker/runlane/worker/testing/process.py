"""The scripted model as a child process, for whoever has no model key."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from runlane.journal.errors import ServerLaunchError

_START_TIMEOUT_S: Final = 10.0


@contextmanager
def scripted_model(
    script: str = "directives", *, port: int = 0
) -> Generator[dict[str, str], None, None]:
    """Run the scripted model server; yield the environment that makes an agent use it.

    Raises:
        ServerLaunchError: It did not start; the message is its own.
    """
    command = [sys.executable, "-m", "runlane.worker.testing.model_server"]
    process = subprocess.Popen(  # noqa: S603 (our own interpreter)
        [*command, "--port", str(port), "--script", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            raise ServerLaunchError(
                process.stderr.read().strip() or "the scripted model server did not start"
            )
        yield {"MODEL_URL": url, "MODEL_API_KEY": "scripted", "CHAT_MODEL": f"scripted-{script}"}
    finally:
        process.terminate()
        try:
            process.wait(_START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()
