"""The examples do what they say: alone, or as a service that asks what `runlane dev` serves."""

import asyncio
import importlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.e2e.harness import ROOT, RUNLANE, environment
from tests.e2e.waiting import until

from runlane.journal.server import Server

SAYS = {
    "behavior_hooks": "behavior_stop: two turns are enough",
    "composed_harness": "call 2 that was made: 500 cents are paid back",
    "context_and_hints": "the model read [1, 3, 3] messages\nthe journal has 6 messages",
    "custom_tools": 'results: {"celsius": -4.0} | 24.8 F',
    "durable_run": "steps [1, 2, 3], attempt 2: results: step 1 is done | step 2 is done",
    "event_observers": "'agent_finished': 1",
    "explicit_finish": 'completed, tool_completion: {"summary": "all is well"}\n'
    "failed, max_no_tool_responses",
    "multimodal_results": "screen.png image/png True",
    "parallel_tools": "started   2 weather\ncompleted 0",
    "permission_deny_list": "permission denied: the tool is on the deny list",
    "runtime_control": "steered: echo: Only results of this year, please.\n"
    "follow-up: echo: Thank you!\n"
    "continued: continued: echo: Thank you!\n"
    "aborted: cancelled, external_abort, that takes too long",
    "schema_validation": "number is above the allowed maximum",
    "session_resume": "then: echo: Which number?",
    "stateful_chat": "the next run reads 4 messages",
    "streaming_events": "all of it: True",
    "tool_approval": '"reason": "ask the manager", "rule_id": "money"',
    "tool_progress": "100% page 3 of 3\nresults: 3 pages are indexed",
    "usage_budget": "token_budget_exceeded",
}
"""What each example prints that is alone, besides other things."""

ASKING = {
    "ask.py": "shipped on Monday",
    "ask_sync.py": "Is anybody there?",
    "branches.py": "imported: ImportReport(lines=14, branches=4, runs=3",
}
"""The same of those that ask the support agent."""


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


def run_example(*words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment(**variables),
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
    for name, said in ASKING.items():
        asked = await asyncio.to_thread(run_example, f"examples/{name}", RUNLANE_REDIS_URL=found[1])
        assert asked.returncode == 0, asked.stderr
        assert said in asked.stdout
    process.send_signal(signal.SIGTERM)
    await until(lambda: process.poll() is not None, "dev ends")
    assert process.returncode == 0


def test_an_example_brings_all_that_it_needs() -> None:
    ran = run_example("-m", "examples.stateful_chat")
    assert ran.returncode == 0, ran.stderr
    assert SAYS["stateful_chat"] in ran.stdout
    assert ran.stderr == ""


@pytest.mark.parametrize("name", SAYS)
async def test_an_example_says_what_it_shows(
    name: str,
    server: Server,
    prefix: str,
    model: Mapping[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    variables = {**model, "RUNLANE_REDIS_URL": server.url, "RUNLANE_PREFIX": prefix}
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    with capture_logs():
        await importlib.import_module(f"examples.{name}").main()
    assert SAYS[name] in capsys.readouterr().out


def test_every_example_is_tried() -> None:
    files = {path.stem for path in (ROOT / "examples").glob("*.py")}
    helpers = {"__init__", "local", "support"}
    assert files == {*SAYS, *helpers, *(name.removesuffix(".py") for name in ASKING)}
