"""`runlane demo` as a process."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis.asyncio import Redis
from tests.checkers.invariants import check_keyspace

DEADLINE_S = 120
LINES = (
    "runs accepted                        │ 60 in 20 sessions ",
    "runs completed                       │ 60 of 60 ",
    "lanes in order                       │ 20 of 20 ",
    "taken over after SIGKILL (lease 2 s) │ ",
    "handed back after SIGTERM            │ ",
    "side effects per call                │ 40 calls: ",
    " 0 twice ",
    "committed events                     │ ",
    "workers that died by themselves      │ 0 ",
    "verdict: all held",
    "runlane dev runlane.worker.demo.agents:app",
)


@contextmanager
def runlane(
    folder: Path, *words: str, **environ: str
) -> Generator[subprocess.Popen[str], None, None]:
    """Run a command; of our variables its environment has only those that are given."""
    ours = ("RUNLANE_", "MODEL_", "CHAT_MODEL", "LLM_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    with subprocess.Popen(
        [sys.executable, "-c", "from runlane.producer.cli import main; main()", *words],
        cwd=folder,
        env={**inherited, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def outcome(folder: Path, *words: str, **environ: str) -> tuple[int, str]:
    """Return exit code and output of a command that ends."""
    with runlane(folder, *words, **environ) as process:
        output, _ = process.communicate(timeout=DEADLINE_S)
        return process.returncode, output


def output_until(process: subprocess.Popen[str], text: str) -> str:
    """Return what was printed up to and with the first line that holds `text`."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError(f"no {text!r} in {lines}")


def interrupt(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    return process.returncode


def stat(pid: int) -> list[str]:
    """Return state, parent and the rest of what Linux knows of a process; nothing if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [] if fields[0] == "Z" else fields


def children(pid: int) -> list[int]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [each for each in pids if stat(each)[1:2] == [str(pid)]]


@pytest.mark.timeout(DEADLINE_S + 30)
def test_everything_holds_while_one_worker_is_killed_and_one_drained(tmp_path: Path) -> None:
    code, output = outcome(tmp_path, "demo")
    assert code == 0, output
    for line in LINES:
        assert line in output
    assert list((tmp_path / ".runlane" / "demo").iterdir()) == []


@pytest.mark.timeout(DEADLINE_S + 30)
async def test_it_stays_up_on_a_server_that_is_given_and_leaves_no_key_there(
    tmp_path: Path, redis_url: str, redis: Redis
) -> None:
    with runlane(tmp_path, "demo", "--keep", RUNLANE_REDIS_URL=redis_url) as demo:
        output = output_until(demo, "runlane run my-session")
        assert "verdict: all held" in output
        environ = dict(re.findall(r"export (\w+)=(\S+)", output))
        assert environ["RUNLANE_REDIS_URL"] == redis_url
        prefix = environ["RUNLANE_PREFIX"]
        await check_keyspace(redis, prefix, quiescent=True)
        runs: list[bytes] = await redis.keys(f"{prefix}:*:run:*")
        assert len(runs) == 60
        assert "demo-20\tsupport" in outcome(tmp_path, "sessions", "ls", **environ)[1]
        ask = ("run", "my-session", 'Where? [[tool find_order {"order_id": "A-1"}]]')
        assert "delivered" in outcome(tmp_path, *ask, "--agent", "support", **environ)[1]
        assert interrupt(demo) == 0
    left: list[bytes] = await redis.keys(f"{prefix}:*")
    assert left == []
    assert await redis.exists(*(b"arq:result:" + run.rpartition(b":")[2] for run in runs)) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ctrl_c_leaves_no_process_behind(tmp_path: Path) -> None:
    with runlane(tmp_path, "demo") as demo:
        output_until(demo, "SIGKILL")
        started = children(demo.pid)
        assert len(started) >= 4  # a server, a model, two workers, perhaps a third
        assert interrupt(demo) == 130
    deadline = time.monotonic() + 10
    while any(map(stat, started)):
        assert time.monotonic() < deadline, started
        time.sleep(0.05)
    assert list((tmp_path / ".runlane" / "demo").iterdir()) == []


@pytest.mark.parametrize(
    ("environ", "code_expected", "advice"),
    [
        ({"MODEL_URL": "http://127.0.0.1:1"}, 2, "A model needs CHAT_MODEL"),
        (
            {"RUNLANE_REDIS_URL": "redis://127.0.0.1:1"},
            3,
            "check that it runs",
        ),
        ({"RUNLANE_DATA_DIR": "/dev/null"}, 1, "choose another directory by RUNLANE_DATA_DIR"),
        ({"LLM_TIMEOUT": "soon"}, 1, "did not start: error:"),
    ],
)
def test_a_part_that_does_not_start_is_one_line(
    tmp_path: Path, environ: dict[str, str], code_expected: int, advice: str
) -> None:
    code, output = outcome(tmp_path, "demo", **environ)
    assert code == code_expected, output
    assert output.splitlines()[-1].startswith("error: ")
    assert advice in output.splitlines()[-1]
    assert "Traceback" not in output
