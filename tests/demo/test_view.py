"""What is shown while the demo goes on."""

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from tests.demo.story import COMPLETED, RUN, story

from runlane.worker.demo.fleet import WorkerProcess, WorkerState
from runlane.worker.demo.observed import Observed, SessionTrace
from runlane.worker.demo.report import print_verdict
from runlane.worker.demo.verdict import judge
from runlane.worker.demo.view import LiveView, View, view_on


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[WorkerProcess]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as sleeper:
        yield WorkerProcess("worker 1", tmp_path / "log", sleeper, worker_id="a")
        sleeper.kill()


def test_a_line_for_every_ten_runs() -> None:
    trace = SessionTrace("s1")
    view = View(Console(file=io.StringIO()), Observed(scripted=True, sessions=[trace]))
    for number in range(25):
        trace.results[f"r{number}"] = COMPLETED
        view.refresh()
    printed = view.console.file
    assert isinstance(printed, io.StringIO)
    assert [line.split("ended ")[1] for line in printed.getvalue().splitlines()] == [
        "10; events heard 0",
        "20; events heard 0",
    ]


def test_a_terminal_shows_every_worker_and_what_it_holds(worker: WorkerProcess) -> None:
    trace = SessionTrace("s1", holders={RUN: "a"})
    printed = io.StringIO()
    console = Console(file=printed, force_terminal=True, width=100, color_system=None)
    with view_on(console, Observed(scripted=True, sessions=[trace]), [worker]) as view:
        assert isinstance(view, LiveView)
        view.refresh()
        assert f"{worker.pid}" in printed.getvalue()
        assert "serving   ▪" in printed.getvalue()
        worker.kill()
        view.refresh()
        assert "killed   ▪" in printed.getvalue()


def test_a_worker_that_nobody_ended_has_died(worker: WorkerProcess) -> None:
    worker.process.kill()
    worker.process.wait()
    assert worker.state is WorkerState.DIED


def test_the_report_names_what_did_not_hold() -> None:
    observed = story()
    observed.died.append("worker 2")
    printed = io.StringIO()
    lines = judge(observed, lease_s=2, runs_per_session=3)
    print_verdict(Console(file=printed, width=100), lines)
    assert "verdict: not all held" in printed.getvalue()
    assert "worker 2 ended though nobody ended it" in printed.getvalue()
