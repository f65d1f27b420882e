"""The power fails: of the append-only file there is what was synced, and no byte more."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.durability.load import Load, lost
from tests.durability.replicas import asking
from tests.e2e.waiting import DEADLINE_S, until

from runlane.journal.partition import Partition
from runlane.journal.server import Server, launch

ANSWERS = 300


@dataclass
class Machine:
    """A server, and what its disk has really taken.

    Attributes:
        log: What was synced.
        forgets: While this file exists, the disk lies.
    """

    server: Server
    log: Path
    forgets: Path

    def sync(self, policy: str) -> None:
        with asking(self.server.port) as redis:
            redis.config_set("appendfsync", policy)

    def synced(self, file: Path) -> int:
        """Return how much of a file the disk has."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        sizes = [line.partition(" ")[0] for line in lines if line.endswith(f" {file}")]
        return max(map(int, sizes), default=0)

    def is_synced(self) -> bool:
        return all(self.synced(file) == file.stat().st_size for file in self._files())

    def cut_power(self) -> None:
        """End the server at once, and take away what was not synced."""
        os.kill(self.server.pid, signal.SIGKILL)
        self.server.stop()
        for file in self._files():
            os.truncate(file, self.synced(file))

    def _files(self) -> list[Path]:
        files = list(self.server.data_dir.glob("appendonlydir/*.incr.aof"))
        assert files, "the server keeps an append-only file"
        return files


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        missing = pytest.fail if os.environ.get("RUNLANE_CI") else pytest.skip
        missing("no C compiler (cc) is on PATH")
    library = tmp_path_factory.mktemp("shim") / "fsync_shim.so"
    source = Path(__file__).with_name("fsync_shim.c")
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


@pytest.fixture
def machine(
    any_binary: Path, shim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Machine]:
    log, forgets = tmp_path / "synced", tmp_path / "forgets"
    monkeypatch.setenv("LD_PRELOAD", str(shim))
    monkeypatch.setenv("FSYNC_LOG", str(log))
    monkeypatch.setenv("FSYNC_FORGETS", str(forgets))
    with launch(tmp_path / "server", binary=any_binary) as server:
        yield Machine(server, log, forgets)


@pytest.fixture
async def partition(machine: Machine, prefix: str) -> AsyncIterator[Partition]:
    partition = Partition(machine.server.url, prefix=prefix, retry_s=DEADLINE_S)
    await partition.open()
    yield partition
    await partition.close()


async def test_a_power_cut_undoes_nothing_where_every_write_is_synced(
    machine: Machine, partition: Partition
) -> None:
    machine.sync("always")
    async with writing(partition) as load:
        machine.cut_power()
    machine.server.start()
    assert await lost(partition, load.acknowledged) == []
    async with writing(partition):
        pass


async def test_a_power_cut_undoes_what_was_not_synced_yet(
    machine: Machine, partition: Partition
) -> None:
    """And so this is a test that would notice."""
    machine.sync("everysec")
    async with writing(partition) as early:
        pass
    await until(machine.is_synced, "the disk has everything")
    machine.forgets.touch()
    async with writing(partition) as late:
        machine.cut_power()
    machine.server.start()
    assert await lost(partition, early.acknowledged) == []
    assert await lost(partition, late.acknowledged) == late.acknowledged


@asynccontextmanager
async def writing(partition: Partition) -> AsyncGenerator[Load, None]:
    """Write until the end of the block, which begins when much is acknowledged."""
    load = Load(partition)
    task = asyncio.create_task(load.write())
    await until(lambda: len(load.acknowledged) > ANSWERS, "much is acknowledged")
    yield load
    task.cancel()
    await asyncio.wait([task])
