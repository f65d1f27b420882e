"""The examples do what their page says: a worker by `runlane dev`, and services that ask it."""

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.harness import ROOT, RUNLANE, environment
from tests.e2e.waiting import until


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    log = tmp_path / "dev.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, RUNLANE, "dev", "examples.support:app", "--port", "0"],
            cwd=ROOT,
            env=environment(RUNLANE_DATA_DIR=str(tmp_path / "data")),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    yield process, log
    process.kill()
    process.wait()


def run_example(name: str, url: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, f"examples/{name}"],
        cwd=ROOT,
        env=environment(RUNLANE_REDIS_URL=url),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def test_the_examples_ask_an_agent_that_dev_serves(
    dev: tuple["subprocess.Popen[bytes]", Path],
) -> None:
    process, log = dev
    await until(lambda: "worker_started" in log.read_text(), "dev serves")
    found = re.search(r"RUNLANE_REDIS_URL=(\S+)", log.read_text())
    assert found, log.read_text()
    for example, said in (
        ("ask.py", "shipped on Monday"),
        ("ask_sync.py", "Is anybody there?"),
        ("branches.py", "imported: ImportReport(lines=14, branches=4, runs=3"),
    ):
        asked = await asyncio.to_thread(run_example, example, found[1])
        assert asked.returncode == 0, asked.stderr
        assert said in asked.stdout
    process.send_signal(signal.SIGTERM)
    await until(lambda: process.poll() is not None, "dev ends")
    assert process.returncode == 0
