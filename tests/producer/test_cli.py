"""The command line, as a process."""

import asyncio
import json
import os
import pty
import re
import signal

import pytest
from click.testing import CliRunner
from tests.producer.hand_worker import HandWorker
from tests.producer.shell import Shell
from tests.producer.support import DEADLINE_S, until_subscribed

from runlane.journal.wire.messages import ModelToolCall
from runlane.producer import Session, StopReason
from runlane.producer.cli import cli


async def test_run_prints_the_answer_and_the_outcome(
    shell: Shell, worker: HandWorker, session: Session
) -> None:
    process = await shell.start("run", "s1", "hello", "--agent", "support")
    await until_subscribed(worker.partition, session)
    held = await worker.begin()
    call = ModelToolCall(id="c1", name="lookup", arguments='{"id": 7}')
    await held.stream(1, "let me ")
    await held.say(1, "let me look\x1b[31m", call)
    await held.use_tool(1, call)
    await held.say(2, "it is 42")
    await held.finish("it is 42")
    code, out, err = await shell.end(process)
    assert code == 0
    assert out == "let me look[31m\nit is 42\n"
    assert err.splitlines()[:2] == ['→ lookup {"id": 7}', "← lookup: ok"]
    assert f"completed (text_response) · 1 turn · 0 tokens · run {held.lease.run_id}" in err


async def test_run_on_a_terminal_streams_the_text(
    shell: Shell, worker: HandWorker, session: Session
) -> None:
    controller, terminal = pty.openpty()
    process = await shell.start("run", "s1", "hello", "--agent", "support", stdout=terminal)
    os.close(terminal)
    await until_subscribed(worker.partition, session)
    held = await worker.begin()
    await held.stream(1, "once ", "upon ")
    async with asyncio.timeout(DEADLINE_S):
        shown = ""
        while "upon" not in shown:
            shown += (await asyncio.to_thread(os.read, controller, 1000)).decode()
    await held.say(1, "once upon a time")
    await held.finish()
    code, _, _ = await shell.end(process)
    shown += os.read(controller, 1000).decode()
    os.close(controller)
    assert (code, shown) == (0, "once upon a time\r\n")


async def test_run_as_json(shell: Shell, worker: HandWorker, session: Session) -> None:
    process = await shell.start("run", "s1", "hello", "--agent", "support", "--json")
    await until_subscribed(worker.partition, session)
    held = await worker.complete("yes")
    code, out, _ = await shell.end(process)
    document = json.loads(out)
    assert code == 0
    assert document["run_id"] == held.lease.run_id
    assert (document["status"], document["output"], document["error"]) == ("completed", "yes", None)
    assert document["usage"]["input_tokens"] == 0


async def test_a_run_that_does_not_complete_exits_with_1(
    shell: Shell, worker: HandWorker, session: Session
) -> None:
    process = await shell.start("run", "s1", "hello", "--agent", "support")
    await until_subscribed(worker.partition, session)
    await (await worker.begin()).finish("too often", stop_reason=StopReason.RATE_LIMITED)
    code, out, err = await shell.end(process)
    assert (code, out) == (1, "")
    assert "failed (rate_limited): too often" in err


async def test_no_wait_continue_and_follow_up(shell: Shell, worker: HandWorker) -> None:
    words = ("run", "s1", "hello", "--agent", "support", "--no-wait", "--idempotency-key", "k")
    code, out, _ = await shell.run(*words)
    assert code == 0
    run_id = out.strip()
    assert re.fullmatch(r"[0-9a-f-]{36}", run_id)
    assert (await shell.run(*words)).out.strip() == run_id
    code, out, _ = await shell.run("follow-up", "s1", "more", "--no-wait", "--json")
    assert (code, json.loads(out)["session_id"]) == (0, "s1")
    code, _, err = await shell.run("continue", "s1")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("error: ")
    assert "agent_active" in err
    await worker.complete()
    await worker.complete()
    assert (await shell.run("continue", "s1", "--no-wait")).code == 0


async def test_a_deadline_leaves_the_run_alone(shell: Shell) -> None:
    for options in ((), ("--json",)):
        code, out, err = await shell.run(
            "run", "s1", "hello", "--agent", "support", "--timeout", "0.1", *options
        )
        assert (code, out) == (1, "")
        assert "it goes on" in err


async def test_an_interrupt_leaves_the_run_alone(
    shell: Shell, worker: HandWorker, session: Session
) -> None:
    process = await shell.start("run", "s1", "hello", "--agent", "support")
    await until_subscribed(worker.partition, session)
    process.send_signal(signal.SIGINT)
    code, out, err = await shell.end(process)
    (lease,) = await worker.claim()
    assert (code, out) == (130, "")
    expected = f"run {lease.run_id} goes on; follow it by: runlane tail s1 --run {lease.run_id}"
    assert err.splitlines() == [expected]


async def test_a_run_that_nobody_serves_says_so(
    shell: Shell, worker: HandWorker, session: Session
) -> None:
    await worker.register(lease_ms=0)
    process = await shell.start("run", "s1", "hello", "--agent", "support")
    await until_subscribed(worker.partition, session)
    process.send_signal(signal.SIGINT)
    assert "no live worker serves 'support'" in (await shell.end(process)).err


async def test_tail(shell: Shell, worker: HandWorker, session: Session) -> None:
    first = await session.run("one")
    await worker.complete("yes")
    code, out, _ = await shell.run("tail", "s1", "--run", first.run_id)
    assert code == 0
    assert [line.split()[3] for line in out.splitlines()] == [
        *("run_queued", "agent_started", "message_completed", "agent_finished")
    ]
    code, out, _ = await shell.run("tail", "s1", "--run", first.run_id, "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["revision"] for event in events] == [1, 2, 3, 4]
    cursor = events[1]["cursor"]
    process = await shell.start("tail", "s1", "--after", cursor, "--json")
    await until_subscribed(worker.partition, session)
    assert process.stdout is not None
    await session.run("two")
    async with asyncio.timeout(DEADLINE_S):
        lines = [json.loads(await process.stdout.readline()) for _ in range(3)]
    assert [line["revision"] for line in lines] == [3, 4, 5]
    process.send_signal(signal.SIGINT)
    assert (await shell.end(process)).code == 130


async def test_abort(shell: Shell, worker: HandWorker, session: Session) -> None:
    waiting = await session.run("one")
    code, out, _ = await shell.run("abort", waiting.run_id, "--reason", "wrong customer")
    assert (code, out) == (0, f"{waiting.run_id} accepted\n")
    assert (await waiting).error == "wrong customer"
    ended = await session.run("two")
    await worker.complete()
    assert (await shell.run("abort", ended.run_id))[:2] == (2, f"{ended.run_id} run_finished\n")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("run", "new", "hello"), "name the agent"),
        (("run", "a b", "hello"), "session id"),
        (("run", "s1", " ", "--agent", "support"), "the task is empty"),
        (("run", "s1", "x", "--agent", "suport"), "known: sales, support"),
        (("run", "s1", "x", "--branch", "@control"), "branch"),
        (("tail", "nowhere"), "no session 'nowhere'"),
        (("sessions", "show", "nowhere"), "no session 'nowhere'"),
        (("abort", "17"), "not a UUID"),
        (("abort", "0199f0a4-7c1e-7aa3-b6f1-6f0c2d0e9b11"), "no run"),
        (("follow-up", "nowhere", "x"), "no session 'nowhere'"),
        (("run", "s1", "x", "--prefix", "a b"), "prefix"),
        (("run", "s1", "x", "--redis-url", "http://:geheim@x"), "not of the form redis://"),
    ],
)
async def test_what_is_refused_exits_with_2(
    shell: Shell, words: tuple[str, ...], text: str
) -> None:
    code, out, err = await shell.run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert text in err
    assert err.count("\n") == 1
    assert "geheim" not in err


async def test_wrong_use_exits_with_2(shell: Shell) -> None:
    for words in (("run",), ("nothing",), ("run", "s1", "x", "--timeout", "-1")):
        code, _, err = await shell.run(*words)
        assert code == 2
        assert "Usage:" in err


async def test_a_server_that_cannot_be_used_exits_with_3(shell: Shell, unused_port: int) -> None:
    shell.environ["RUNLANE_REDIS_URL"] = f"redis://:geheim@127.0.0.1:{unused_port}"
    commands = (("run", "s1", "x"), ("tail", "s1"), ("sessions", "ls"), ("abort", "0" * 32))
    outcomes = await asyncio.gather(*(shell.run(*words) for words in commands))
    for code, out, err in outcomes:
        assert (code, out) == (3, "")
        assert re.fullmatch(r"error: the Redis server .*\n", err)
        assert "geheim" not in err


async def test_a_silent_server_is_given_up(shell: Shell) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1") as silent:
        port = silent.sockets[0].getsockname()[1]
        shell.environ["RUNLANE_REDIS_URL"] = f"redis://127.0.0.1:{port}"
        code, _, err = await shell.run("sessions", "ls")
    assert (code, err) == (3, "error: the Redis server gave no answer within 4 s\n")


async def test_no_server_is_named(shell: Shell) -> None:
    del shell.environ["RUNLANE_REDIS_URL"]
    code, _, err = await shell.run("sessions", "ls")
    assert code == 2
    assert "RUNLANE_REDIS_URL" in err


def test_help_shows_examples() -> None:
    for words in ((), ("run",), ("tail",), ("sessions", "ls"), ("follow-up",), ("abort",)):
        result = CliRunner().invoke(cli, [*words, "--help"])
        assert result.exit_code == 0
        assert "Example" in result.output


def unloadable(self: object) -> object:
    raise ModuleNotFoundError("No module named 'openai'")


def test_a_command_whose_extra_is_missing_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.metadata.EntryPoint.load", unloadable)
    result = CliRunner().invoke(cli, ["worker", "app:x", "--max-runs", "3"])
    assert result.exit_code == 2
    assert "No module named 'openai'" in result.stderr
    assert "pip install 'runlane[worker]'" in result.stderr
    listed = CliRunner().invoke(cli, ["--help"])
    assert (listed.exit_code, "worker" in listed.output) == (0, True)
