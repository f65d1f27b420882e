"""A network splits: the old master and a client on one side, everybody else on the other."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.conftest import bundled_binary
from tests.durability.load import read
from tests.durability.namespaces import Network
from tests.durability.replicas import MASTER, sentinel_configuration
from tests.durability.verdict import Verdict
from tests.e2e.waiting import until

PORT: Final = 6379
SENTINEL_PORT: Final = 26379
SERVERS: Final = ("n1", "n2", "n3")
OPTIONS: Final = shlex.split(
    f"--port {PORT} --bind 0.0.0.0 --protected-mode no --save '' --appendonly yes "
    "--repl-diskless-sync-delay 0 --repl-ping-replica-period 1"
)
ANSWERS: Final = 200

ASK: Final = """
import contextlib, socket, sys
with contextlib.suppress(OSError):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5) as connection:
        connection.sendall((sys.argv[2] + "\\r\\n").encode())
        print(connection.recv(65536).decode())
"""


@dataclass
class Split:
    """Three hosts with a server and a Sentinel each, a client beside the master and one apart."""

    network: Network
    folder: Path
    stack: ExitStack = field(default_factory=ExitStack)
    writers: ExitStack = field(default_factory=ExitStack)
    names: list[str] = field(default_factory=list[str])

    @property
    def url(self) -> str:
        hosts = ",".join(f"{self.network.address(host)}:{SENTINEL_PORT}" for host in SERVERS)
        return f"redis+sentinel://{hosts}/{MASTER}/0"

    def start_servers(self, binary: Path) -> None:
        master = self.network.address(SERVERS[0])
        for host in SERVERS:
            home = self.folder / host
            home.mkdir()
            following = [] if host == SERVERS[0] else ["--replicaof", master, str(PORT)]
            self._serve(host, str(binary), *OPTIONS, "--dir", str(home), *following)

    def start_sentinels(self, binary: Path) -> None:
        master = self.network.address(SERVERS[0])
        for host in SERVERS:
            home = self.folder / host
            configuration = home / "sentinel.conf"
            configuration.write_text(sentinel_configuration(home, master, SENTINEL_PORT, PORT))
            self._serve(host, str(binary), str(configuration), "--sentinel")

    def _serve(self, host: str, *words: str) -> None:
        self.stack.enter_context(self.network.running(host, *words))

    def load(self, host: str, prefix: str, durability: str) -> Callable[[], int]:
        """Begin to write from a host; return what counts the answers."""
        self.names.append(prefix)
        file = self.folder / prefix
        module = (sys.executable, "-m", "tests.durability.load")
        words = (*module, self.url, prefix, durability, str(file))
        self.writers.enter_context(self.network.running(host, *words))
        return lambda: len(read(file))

    def verdict(self, prefix: str) -> Verdict:
        module = (sys.executable, "-m", "tests.durability.verdict")
        file = str(self.folder / prefix)
        return msgspec.json.decode(
            self.network.ask("c2", *module, self.url, prefix, file), type=Verdict
        )

    def is_(self, role: str, host: str) -> bool:
        return role in self._ask(host, PORT, "ROLE")

    def is_replicated(self) -> bool:
        """Return whether the first server has both replicas."""
        return len(self._ask(SERVERS[0], PORT, "ROLE")) == 8

    def is_watched(self) -> bool:
        """Return whether each Sentinel knows the others and both replicas."""
        wanted = ("num-slaves 2", "num-other-sentinels 2")
        states = [
            " ".join(self._ask(host, SENTINEL_PORT, f"SENTINEL MASTER {MASTER}"))
            for host in SERVERS
        ]
        return all(each in state for each in wanted for state in states)

    def _ask(self, host: str, port: int, question: str) -> list[str]:
        """Return the words of a reply; none if nobody answers."""
        words = (sys.executable, "-I", "-S", "-c", ASK, str(port), question)
        return [word for word in self.network.ask(host, *words).split() if word[0] not in "*$"]


@pytest.fixture
def split(tmp_path: Path) -> Iterator[Split]:
    with Network([*SERVERS, "c1", "c2"]) as network:
        split = Split(network, tmp_path)
        with split.stack, split.writers:
            yield split


async def test_a_split_undoes_nothing_that_a_replica_confirmed_and_hides_no_other_loss(
    split: Split,
) -> None:
    binary = bundled_binary()
    split.start_servers(binary)
    await until(split.is_replicated, "the first server has its replicas")
    split.start_sentinels(binary)
    await until(split.is_watched, "the Sentinels know each other and the replicas")
    confirmed = split.load("c1", "confirmed", "ha-acked")
    unconfirmed = split.load("c1", "unconfirmed", "ha")
    elsewhere = split.load("c2", "elsewhere", "ha-acked")
    await until_more(confirmed, unconfirmed, elsewhere)

    split.network.cut_off("n1", "c1")
    await until(lambda: split.is_("master", "n2") or split.is_("master", "n3"), "a new master")
    await until_more(unconfirmed, split.load("c2", "newcomer", "ha-acked"))
    split.network.heal()
    await until(lambda: split.is_("slave", "n1"), "the old master is demoted")
    await until_more(confirmed, unconfirmed, elsewhere)

    split.writers.close()
    verdicts = {name: split.verdict(name) for name in split.names}
    assert verdicts.pop("unconfirmed").unnoticed == 0
    assert [verdict.lost for verdict in verdicts.values()] == [0, 0, 0]


async def until_more(*counts: Callable[[], int]) -> None:
    """Wait until each load has many more answers than now."""
    for count, enough in [(count, count() + ANSWERS) for count in counts]:
        await until(partial(_is_over, count, enough), "writing goes on")


def _is_over(count: Callable[[], int], enough: int) -> bool:
    return count() > enough
