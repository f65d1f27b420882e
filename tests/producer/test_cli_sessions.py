"""`runlane sessions`, as a process."""

import asyncio
import json
import os
import pty
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.producer.hand_worker import HandWorker
from tests.producer.shell import COMMAND, Shell
from tests.producer.support import DEADLINE_S, add_run
from tests.transfer.ejagent_files import GOLDEN
from tests.transfer.folding import Records, write

from runlane.producer import Client, Session
from runlane.producer.cli import cli
from runlane.producer.commands.exit_codes import INTERRUPTED
from runlane.producer.commands.sessions import COMMANDS


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


async def test_ls_and_show(shell: Shell, worker: HandWorker, session: Session) -> None:
    assert await shell.run("sessions", "ls") == (0, "", "")
    await session.run("one")
    await worker.complete("yes")
    await session.fork(name="side")
    code, out, _ = await shell.run("sessions", "ls")
    assert (code, out.split("\t")[:2]) == (0, ["s1", "support"])
    _, out, _ = await shell.run("sessions", "ls", "--json")
    assert json.loads(out)["session_id"] == "s1"
    code, out, _ = await shell.run("sessions", "show", "s1")
    assert code == 0
    assert "agent: support\n" in out
    assert "branches: main, side\n" in out
    assert out.endswith("\nuser: hi\n\nassistant: yes\n")
    _, out, _ = await shell.run("sessions", "show", "s1", "--json")
    document: dict[str, Any] = json.loads(out)
    assert document["active_run"] is None
    assert [branch["branch_id"] for branch in document["branches"]] == ["main", "side"]
    assert [message["content"] for message in document["messages"]] == ["hi", "yes"]


async def test_records(shell: Shell, worker: HandWorker, session: Session) -> None:
    await session.run("one")
    await worker.complete("yes\x1b[31m")
    code, out, _ = await shell.run("sessions", "records", "s1")
    assert code == 0
    assert [line.split()[3] for line in out.splitlines()] == [
        *("run_queued", "run_started", "message_appended", "run_finished")
    ]
    assert "\x1b" not in out
    _, out, _ = await shell.run(
        "sessions", "records", "s1", "--newest-first", "--limit", "2", "--json"
    )
    newest = lines(out)
    assert [record["revision"] for record in newest] == [4, 3]
    assert newest[0]["record_id"] == await session.head()
    assert newest[0]["body"]["result"]["output"] == "yes\x1b[31m"


async def test_a_branch_is_made_used_and_promoted(
    shell: Shell, worker: HandWorker, client: Client, session: Session
) -> None:
    first = await session.run("one")
    await worker.complete("yes")
    base = await session.head()
    assert base is not None
    await session.run("two")
    await worker.complete("no")
    fork = await shell.run("sessions", "fork", "s1", "--at", base, "--name", "what-if")
    assert fork == (0, "what-if\n", "")
    back = await shell.run("sessions", "rollback", "s1", base, "--json")
    assert json.loads(back.out)["session_id"] == "s1"
    assert json.loads(back.out)["branch_id"].startswith("rollback-")
    retry = await shell.run("sessions", "retry", "s1", first.run_id, "--name", "again")
    assert retry == (0, "again\nhi\n", "")
    _, out, _ = await shell.run("sessions", "branches", "s1")
    made = [line.split("\t") for line in out.splitlines()]
    assert [row[1] for row in made] == ["-", "fork", "rollback", "retry"]
    assert [row[2] for row in made] == ["-", "main", "main", "main"]
    _, out, _ = await shell.run("sessions", "branches", "s1", "--json")
    assert [branch["base_id"] for branch in lines(out)] == [None, base, base, None]
    code, out, _ = await shell.run("sessions", "promote", "s1", "what-if")
    assert (code, out.strip()) == (0, await session.head())
    assert len(await session.messages()) == 2


async def test_export_and_import(
    shell: Shell, worker: HandWorker, client: Client, session: Session
) -> None:
    await session.run("one")
    await worker.complete("yes")
    code, out, err = await shell.run("sessions", "export", "s1", "s1.jsonl")
    assert (code, out) == (0, "")
    assert re.fullmatch(r"lines: 4, bytes: \d+, up to revision 4\n", err)
    content = (shell.folder / "s1.jsonl").read_text()
    assert (await shell.run("sessions", "export", "s1", "-")).out == content
    code, out, err = await shell.run("sessions", "import", "s1.jsonl", "--session", "copy")
    assert (code, out, err) == (0, "", "lines: 4, branches: 1, runs: 1\n")
    assert await client.session("copy").messages() == await session.messages()
    process = await shell.start("sessions", "import", "-", "--session", "piped", stdin=True)
    code, out, err = await shell.end(process, GOLDEN.read_bytes())
    assert (code, err) == (0, "lines: 13, branches: 3, runs: 2\n")
    words = ("sessions", "import", str(GOLDEN), "--session", "named", "--agent", "sales", "--json")
    code, out, _ = await shell.run(*words)
    assert code == 0
    assert json.loads(out)["session_id"] == "named"
    assert json.loads(out)["runs"] == 2
    assert (await client.session("named").status()).agent == "sales"


async def test_a_long_import_shows_a_bar_on_a_terminal(shell: Shell, tmp_path: Path) -> None:
    records = Records()
    for number in range(400):
        add_run(records, "main", f"task {number}")
    (tmp_path / "long.jsonl").write_bytes(b"".join(write(records)))
    controller, terminal = pty.openpty()
    process = await shell.start(
        "sessions", "import", "long.jsonl", "--session", "long", stderr=terminal
    )
    os.close(terminal)
    async with asyncio.timeout(DEADLINE_S):
        await process.wait()
    shown = os.read(controller, 10_000).decode()
    os.close(controller)
    assert process.returncode == 0
    assert "1201/1201" in shown
    assert "lines: 1201, branches: 1, runs: 400" in shown


async def test_steal(shell: Shell, worker: HandWorker, session: Session) -> None:
    await session.run("one")
    idle = await shell.run("sessions", "steal", "s1", "--json")
    assert (idle.code, json.loads(idle.out)["status"]) == (2, "agent_idle")
    held = await worker.begin()
    stolen = await shell.run("sessions", "steal", "s1", "--reason", "it hangs")
    assert stolen == (0, f"{held.lease.run_id} accepted\n", "")
    (again,) = await worker.claim()
    assert again.fence != held.lease.fence


@pytest.mark.parametrize("line", ["export s1 - >&-", "import - --session new <&-"])
async def test_a_closed_standard_stream_is_one_line(
    shell: Shell, session: Session, line: str
) -> None:
    await session.run("one")
    words = shlex.join([*COMMAND, "sessions"])
    process = await asyncio.create_subprocess_shell(
        f"{words} {line}", env=shell.environ, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(DEADLINE_S):
        _, err = await process.communicate()
    assert process.returncode == 2
    assert (err.startswith(b"error: standard "), err.count(b"\n")) == (True, 1)


async def test_a_terminated_export_and_import_leave_nothing(
    shell: Shell, session: Session, worker: HandWorker, tmp_path: Path
) -> None:
    await session.run("one")
    await worker.complete("yes")
    script = (
        "import functools, os, signal\n"
        "from runlane.producer import cli, exporting, importing\n"
        "from runlane.producer.commands.progress import Bar\n"
        "importing.PAGE_RECORDS = 5\n"
        "exporting.read_page = functools.partial(exporting.read_page, count=2)\n"
        "def terminated(*_):\n"
        "    print(os.listdir())\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "Bar.__call__ = terminated\n"
        "cli.main()\n"
    )
    for words in (["export", "s1", "s1.jsonl"], ["import", str(GOLDEN), "--session", "new"]):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", script, "sessions", *words),
            env=shell.environ,
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        code, out, err = await shell.end(process)
        assert code == INTERRUPTED, err
        assert (re.search(r"'\.s1\.jsonl\.\w+\.part'", out) is not None) == (words[0] == "export")
    assert os.listdir(tmp_path) == []
    assert not await worker.partition.call("EXISTS", worker.partition.keys.session("new"))


async def test_rm(shell: Shell, client: Client, session: Session) -> None:
    await session.run("one")
    refused = await shell.run("sessions", "rm", "s1")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "--yes" in refused.err
    assert (await session.status()).revision == 1
    assert await shell.run("sessions", "rm", "s1", "--yes") == (0, "", "")
    assert [info async for info in client.sessions()] == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("branches nowhere", "no session 'nowhere'"),
        ("records nowhere", "no session 'nowhere'"),
        ("fork nowhere", "no session 'nowhere'"),
        ("fork s1 --at 17", "record id"),
        ("fork s1 --name 'a b'", "branch"),
        ("fork s1 --name main", "choose another name"),
        ("rollback s1 9-1.000000000000000000000000", "no record"),
        ("retry s1 nobody", "no run 'nobody' on branch 'main' of session 's1'"),
        ("promote s1 main", "main cannot follow itself"),
        ("fork s1 --name lost-1", "begins with lost-"),
        ("steal s1 --branch nowhere", "no branch 'nowhere'"),
        ("promote s1 nowhere", "no branch 'nowhere'"),
        ("export nowhere x.jsonl", "no session 'nowhere'"),
        ("export s1 no/such/folder", "No such file"),
        ("import nothing.jsonl --session new", "No such file"),
        (f"import {GOLDEN} --session s1", "exists already"),
        (f"import {GOLDEN} --session new --format tada", "cannot be imported"),
        ("steal nowhere", "no session 'nowhere'"),
        ("rm nowhere --yes", "no session 'nowhere'"),
    ],
)
async def test_what_is_refused_exits_with_2(
    shell: Shell, session: Session, line: str, text: str
) -> None:
    await session.run("one")
    code, out, err = await shell.run("sessions", *shlex.split(line))
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert text in err
    assert err.count("\n") == 1


def test_help_shows_examples() -> None:
    for command in COMMANDS:
        result = CliRunner().invoke(cli, ["sessions", command.name or "", "--help"])
        assert result.exit_code == 0
        assert "Example" in result.output
