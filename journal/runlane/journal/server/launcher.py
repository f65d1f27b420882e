"""A Redis or Valkey server of our own, for `runlane dev`, `runlane demo` and the tests.

It listens on loopback only, keeps an append-only file, writes nothing outside its data directory,
and ends with the process that started it, however that one ends. In the data directory lie the
append-only file, `server.log`, `server.lock` (pid and port of the server that holds it) and
`server.version` (which server wrote the data last).
"""

import fcntl
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, Self, cast

from redis import Redis, RedisError

from runlane.journal.errors import ServerLaunchError
from runlane.journal.server.binary import find_binary, server_version

_HOST: Final = "127.0.0.1"
_OPTIONS: Final = shlex.split(
    f"--bind {_HOST} --appendonly yes --appendfsync everysec --save '' "
    "--stream-node-max-bytes 16384 --maxmemory-policy noeviction "
    "--client-output-buffer-limit pubsub 8mb 2mb 10"
)
_TRAMPOLINE: Final = str(Path(__file__).with_name("trampoline.py"))
_WATCH: Final = "prctl" if sys.platform == "linux" else "pipe"

_START_TIMEOUT_S: Final = 10.0
_STOP_TIMEOUT_S: Final = 10.0
_LOCK_TIMEOUT_S: Final = 2.0
_POLL_S: Final = 0.02
_PORT_TRIES: Final = 5
_LOG_LINES: Final = 15


class _PortTakenError(ServerLaunchError):
    def __init__(self, port: int) -> None:
        super().__init__(
            f"port {port} is in use: choose another port, or set "
            f"RUNLANE_REDIS_URL=redis://{_HOST}:{port} to use the server that listens there"
        )


class Server:
    """One server process: a context manager, or `start()` and `stop()`.

    Attributes:
        data_dir: Where it keeps its data, absolute.
        port: Its TCP port on loopback; 0 before the first start if a free one is to be picked,
            the same one from then on.
        version: For example "valkey 9.1.2" or "redis 7.0.15"; empty before the first start.
    """

    def __init__(self, data_dir: str | Path, *, port: int = 0, binary: Path | None = None) -> None:
        self.data_dir = Path(data_dir).resolve()
        self.port = port
        self.version = ""
        self._binary = binary
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"redis://{_HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the server itself."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def start(self) -> Self:
        """Start the server and return when it answers; if it was started before, end that first.

        What it stored is loaded again, and the port stays the same. Call it in the main thread:
        Linux ends the server when the thread that started it ends.

        Raises:
            ServerLaunchError: There is no suitable binary, the port or the data directory is in
                use or unusable, or the server did not come up; the message says what to do.
        """
        if threading.current_thread() is not threading.main_thread():
            raise ServerLaunchError("a server can only be started in the main thread")
        self.stop()
        binary = self._binary or find_binary()
        self.version = server_version(binary)
        try:
            with _locked(self.data_dir) as lock:
                self._start_on_some_port(binary, lock)
                (self.data_dir / "server.version").write_text(self.version)
        except OSError as error:
            raise ServerLaunchError(f"no server can run in {self.data_dir}: {error}") from error
        return self

    def stop(self) -> None:
        """End the server and wait until it is gone; do nothing if it is not running."""
        if self._process is None:
            return
        with self._process as process:
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
        self._process = None

    def __enter__(self) -> Self:
        return self if self._process else self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _start_on_some_port(self, binary: Path, lock: IO[str]) -> None:
        if self.port:
            return self._start_on(self.port, binary, lock)
        for _ in range(_PORT_TRIES - 1):
            with suppress(_PortTakenError):
                return self._start_on(_free_port(), binary, lock)
        return self._start_on(_free_port(), binary, lock)

    def _start_on(self, port: int, binary: Path, lock: IO[str]) -> None:
        with (self.data_dir / "server.log").open("a+b") as log:
            log_start = log.tell()
            # The lock is handed down: it is held as long as the server lives, not this process.
            self._process = process = subprocess.Popen(  # noqa: S603 (the binary is trusted)
                [
                    *(sys.executable, "-I", "-S", _TRAMPOLINE),
                    *(_WATCH, str(os.getpid()), str(binary)),
                    *("--port", str(port), "--dir", str(self.data_dir), *_OPTIONS),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(lock.fileno(),),
                start_new_session=True,  # the terminal's Ctrl-C is for this process
                env={**os.environ, "LC_ALL": "C"},  # an unknown locale stops some servers
            )
            lock.truncate(0)
            lock.write(f"{process.pid} {port}")
            lock.flush()
            with ExitStack() as on_failure:
                on_failure.callback(self.stop)
                if _becomes_ready(process, port):
                    on_failure.pop_all()
                    self.port = port
                    return
            log.seek(log_start)
            raise self._failure(port, log.read().decode(errors="replace"))

    def _failure(self, port: int, log: str) -> ServerLaunchError:
        if "Address already in use" in log:
            return _PortTakenError(port)
        written_by = self.data_dir / "server.version"
        before = written_by.read_text() if written_by.exists() else self.version
        advice = (
            f" The data was written by {before}, and {self.version} may be unable to read it: put "
            "that server on PATH, or choose another directory by RUNLANE_DATA_DIR."
        )
        tail = "\n".join(log.splitlines()[-_LOG_LINES:])
        return ServerLaunchError(
            f"{self.version} did not come up in {self.data_dir}."
            f"{advice if before != self.version else ''} The end of its server.log:\n{tail}"
        )


def launch(data_dir: str | Path, *, port: int = 0, binary: Path | None = None) -> Server:
    """Start a server that keeps its data in `data_dir`, which is created if need be.

    Args:
        data_dir: One server at a time may use it; what an earlier one stored there is loaded.
        port: The TCP port on loopback; 0 picks a free one.
        binary: The server to run; None takes the first that `find_binary` finds.

    Raises:
        ServerLaunchError: See `Server.start`.
    """
    return Server(data_dir, port=port, binary=binary).start()


@contextmanager
def _locked(data_dir: Path) -> Generator[IO[str], None, None]:
    """Hold the directory's lock, waiting a little for a server that is just ending."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with (data_dir / "server.lock").open("a+") as lock:
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        while not _try_lock(lock):
            if time.monotonic() > deadline:
                lock.seek(0)
                pid, _, port = lock.read().partition(" ")
                raise ServerLaunchError(
                    f"{data_dir} is in use by the server with pid {pid} on port {port}: set "
                    f"RUNLANE_REDIS_URL=redis://{_HOST}:{port} to use that one, stop it, or choose "
                    "another directory by RUNLANE_DATA_DIR"
                )
            time.sleep(_POLL_S)
        yield lock


def _try_lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _becomes_ready(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until this very process answers; time it spends on loading its data does not count."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    with Redis(host=_HOST, port=port, socket_timeout=1) as client:
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(RedisError):
                info = cast("dict[str, Any]", client.info())
                if info.get("process_id") == process.pid:
                    if not info["loading"]:
                        return True
                    deadline = time.monotonic() + _START_TIMEOUT_S
            time.sleep(_POLL_S)
    return False
