"""A network of its own, with hosts that can be cut off from each other.

Each host is a network namespace with one cable to a switch; the switch is a namespace too, so
that nothing of this machine's network is touched. A cut moves cables to another bridge.
"""

import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self
from uuid import uuid4

import pytest

from runlane.journal.server import trampoline

ROOT: Final = Path(__file__).parents[2]
SUBNET: Final = "10.77.0"


def _ip(*words: str) -> str:
    return subprocess.run(
        ["ip", *words], check=True, capture_output=True, text=True, timeout=30
    ).stdout


@dataclass
class Network:
    """Some hosts.

    Attributes:
        names: Of the hosts, as the tests call them.
        tag: What the names of the namespaces begin with.
    """

    names: Sequence[str]
    tag: str = field(default_factory=lambda: f"rl{uuid4().hex[:8]}")

    def address(self, host: str) -> str:
        return f"{SUBNET}.{self.names.index(host) + 1}"

    def command(self, host: str, *words: str) -> list[str]:
        """Return a command line that runs on a host, and ends with this process."""
        return [
            *(sys.executable, "-I", "-S", trampoline.__file__, "prctl", str(os.getpid())),
            *("/usr/bin/env", "ip", "netns", "exec", self._namespace(host), *words),
        ]

    @contextmanager
    def running(self, host: str, *words: str) -> Generator[subprocess.Popen[bytes], None, None]:
        """Run a process on a host within the block."""
        process = subprocess.Popen(
            self.command(host, *words),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def ask(self, host: str, *words: str) -> str:
        """Return what a command on a host prints."""
        return subprocess.run(
            self.command(host, *words), cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout

    def cut_off(self, *hosts: str) -> None:
        """Let these hosts reach each other, and no others."""
        for host in hosts:
            self._plug(host, "apart")

    def heal(self) -> None:
        """Let all reach all."""
        for host in self.names:
            self._plug(host, "whole")

    def _plug(self, host: str, bridge: str) -> None:
        _ip("-n", self._namespace("switch"), "link", "set", self._port(host), "master", bridge)

    def _namespace(self, host: str) -> str:
        return f"{self.tag}-{host}"

    def _port(self, host: str) -> str:
        return f"p{self.names.index(host) + 1}"

    def __enter__(self) -> Self:
        with ExitStack() as on_failure:
            on_failure.callback(self.__exit__)
            try:
                self._build()
            except (OSError, subprocess.CalledProcessError) as error:
                detail = getattr(error, "stderr", "") or error
                pytest.skip(f"no network can be made of namespaces here: {str(detail).strip()}")
            on_failure.pop_all()
        return self

    def _build(self) -> None:
        switch = self._namespace("switch")
        _ip("netns", "add", switch)
        for bridge in ("whole", "apart"):
            _ip("-n", switch, "link", "add", bridge, "type", "bridge")
            _ip("-n", switch, "link", "set", bridge, "up")
        for host in self.names:
            self._connect(host)

    def _connect(self, host: str) -> None:
        switch, namespace, port = self._namespace("switch"), self._namespace(host), self._port(host)
        _ip("netns", "add", namespace)
        _ip(
            *("-n", switch, "link", "add", port, "type", "veth"),
            *("peer", "name", "eth0", "netns", namespace),
        )
        _ip("-n", switch, "link", "set", port, "up")
        self._plug(host, "whole")
        _ip("-n", namespace, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", namespace, "link", "set", device, "up")

    def __exit__(self, *exception: object) -> None:
        for host in ("switch", *self.names):
            with suppress(OSError, subprocess.CalledProcessError):
                _ip("netns", "del", self._namespace(host))
