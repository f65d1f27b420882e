"""A master with replicas on loopback, and Sentinels that watch them."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, cast

from redis import Redis
from redis.exceptions import RedisError

from runlane.journal.server import Server, launch, trampoline

MASTER: Final = "m1"
DOWN_AFTER_MS: Final = 500
DEADLINE_S: Final = 60.0
POLL_S: Final = 0.02


@contextmanager
def asking(port: int) -> Generator[Any, None, None]:
    """Open a plain client; redis-py leaves its commands untyped."""
    with Redis(port=port, socket_timeout=DEADLINE_S) as client:
        yield cast("Any", client)


@contextmanager
def stopped(server: Server) -> Generator[None, None, None]:
    """Let a server stand still within the block."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


@contextmanager
def process(*words: str) -> Generator[None, None, None]:
    """Run a program that ends with the block, and with this process."""
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", trampoline.__file__, "prctl", str(os.getpid()), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    try:
        yield
    finally:
        child.kill()
        child.wait()


@contextmanager
def running(binary: Path, folder: Path, *options: str) -> Generator[str, None, None]:
    """Run a server with options of its own; yield its URL."""
    (port,) = _free_ports(1)
    fixed = ("--port", str(port), "--dir", str(folder), "--appendonly", "yes")
    with process(str(binary), *fixed, *options):
        until_true(lambda: _answers(port), "the server answers")
        yield f"redis://127.0.0.1:{port}"


def _answers(port: int) -> bool:
    try:
        with asking(port) as redis:
            return bool(redis.ping())
    except RedisError:
        return False


@contextmanager
def replica_set(
    folder: Path, *, binary: Path, replicas: int = 1
) -> Generator[list[Server], None, None]:
    """Start a master, first in the list, and replicas that are in step with it."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(launch(folder / f"server-{number}", binary=binary))
            for number in range(replicas + 1)
        ]
        for server in servers:
            with asking(server.port) as redis:
                redis.config_set("repl-diskless-sync-delay", 0)
                redis.config_set("repl-ping-replica-period", 1)
                redis.config_set(
                    "shutdown-timeout", 0
                )  # replicas that stand still are not waited for
        for server in servers[1:]:
            with asking(server.port) as redis:
                redis.replicaof("127.0.0.1", servers[0].port)
        with asking(servers[0].port) as redis:
            until_true(lambda: _in_step(redis, replicas), "the replicas are in step")
        yield servers


def _in_step(redis: Any, replicas: int) -> bool:
    info = redis.info("replication")
    online = [info.get(f"slave{number}", {}).get("state") for number in range(replicas)]
    return online == ["online"] * replicas


@dataclass
class Sentinels:
    """Three Sentinels.

    Attributes:
        ports: Where they listen.
    """

    ports: tuple[int, ...]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return f"redis+sentinel://{hosts}/{MASTER}/0"

    def master_port(self) -> int:
        """Return where the master listens, as the first Sentinel knows it."""
        with asking(self.ports[0]) as sentinel:
            return int(sentinel.sentinel_masters()[MASTER]["port"])


@contextmanager
def sentinels(folder: Path, *, binary: Path, master: Server) -> Generator[Sentinels, None, None]:
    """Start Sentinels that have found each other and the replicas."""
    ports = tuple(_free_ports(3))
    with ExitStack() as stack:
        for port in ports:
            stack.enter_context(_sentinel(folder / f"sentinel-{port}", binary, port, master.port))
        watching = Sentinels(ports)
        until_true(lambda: all(map(_sees_the_others, ports)), "the Sentinels know each other")
        yield watching


def _sees_the_others(port: int) -> bool:
    try:
        with asking(port) as sentinel:
            state = sentinel.sentinel_masters()[MASTER]
    except RedisError:
        return False
    return (state["num-other-sentinels"], state["num-slaves"]) == (2, 2)


@contextmanager
def _sentinel(folder: Path, binary: Path, port: int, master: int) -> Generator[None, None, None]:
    folder.mkdir()
    configuration = folder / "sentinel.conf"
    configuration.write_text(sentinel_configuration(folder, "127.0.0.1", port, master))
    with process(str(binary), str(configuration), "--sentinel"):
        yield


def sentinel_configuration(folder: Path, host: str, port: int, master: int) -> str:
    """Return the file of a Sentinel that watches the master at `host`."""
    return "\n".join(
        [
            f"port {port}",
            "bind 0.0.0.0",
            "protected-mode no",
            f"dir {folder}",
            f"logfile {folder}/sentinel.log",
            f"sentinel monitor {MASTER} {host} {master} 2",
            f"sentinel down-after-milliseconds {MASTER} {DOWN_AFTER_MS}",
            f"sentinel failover-timeout {MASTER} 4000",
            f"sentinel parallel-syncs {MASTER} 2",
            "",
        ]
    )


def _free_ports(count: int) -> Iterator[int]:
    with ExitStack() as stack:
        for _ in range(count):
            probe = stack.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            yield cast("int", probe.getsockname()[1])


def until_true(condition: Callable[[], bool], what: str) -> None:
    deadline = monotonic() + DEADLINE_S
    while not condition():
        assert monotonic() < deadline, f"not so within {DEADLINE_S} s: {what}"
        sleep(POLL_S)
