"""Functions that block: none can take the thread of another, and none keeps the process alive."""

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections import Counter
from functools import partial
from typing import Final

import pytest
from tests.tools.support import context_of_call, execute, prepared, runtime_of

from runlane.journal.wire.records import ToolOutcome
from runlane.worker.tools import ToolEffect, ToolResult, tool
from runlane.worker.tools.threads import ToolThreads, run_in_thread

MANY: Final = 100
"""More than asyncio has threads for all code of a process."""


async def test_functions_that_never_return_take_no_thread_from_others() -> None:
    release = threading.Event()

    @tool(effect=ToolEffect.READ_ONLY, timeout_s=0.01)
    def hang() -> None:
        release.wait()

    @tool
    def ping() -> str:
        return "pong"

    async with runtime_of(hang, ping, cancel_grace_s=0.01) as runtime:
        calls = [execute(runtime, prepared(runtime, "hang")) for _ in range(MANY)]
        try:
            hung = await asyncio.gather(*calls)
            assert {each.outcome for each in hung} == {ToolOutcome.ERROR}
            assert await execute(runtime, prepared(runtime, "ping")) == ToolResult(
                "pong", ToolOutcome.OK
            )
            assert await asyncio.to_thread(lambda: "other code") == "other code"
        finally:
            release.set()


async def test_functions_that_block_run_side_by_side() -> None:
    together = threading.Barrier(MANY)

    @tool
    def meet() -> int:
        return together.wait(30)

    async with runtime_of(meet) as runtime:
        calls = [execute(runtime, prepared(runtime, "meet")) for _ in range(MANY)]
        results = await asyncio.gather(*calls)
    assert sorted(int(each.content) for each in results) == [*range(MANY)]


async def test_a_thread_is_used_again() -> None:
    seen = [await run_in_thread(threading.get_ident) for _ in range(MANY)]
    assert len({*seen}) < MANY
    assert threading.get_ident() not in seen


async def test_a_function_sees_the_context_of_its_caller() -> None:
    trace = contextvars.ContextVar("trace", default="")
    trace.set("of the run")

    @tool
    def look() -> str:
        seen = trace.get()
        trace.set("of the tool")
        return seen

    assert (await look.invoke({}, context=context_of_call())).data == "of the run"
    assert trace.get() == "of the run"


async def test_without_a_thread_the_function_does_not_run_later_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[str] = []
    threads = ToolThreads()

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            threads.start(lambda: ran.append("too late"))
    done = threading.Event()
    threads.start(done.set)
    assert done.wait(30)
    assert ran == []


def test_a_free_thread_ends_after_a_while() -> None:
    threads, at_work = ToolThreads(idle_s=0.01), threading.Event()
    workers: list[threading.Thread] = []

    def work() -> None:
        workers.append(threading.current_thread())
        at_work.set()

    for _ in range(2):
        at_work.clear()
        threads.start(work)
        assert at_work.wait(30)
        workers[-1].join(30)
        assert not workers[-1].is_alive()
    assert workers[0] is not workers[1]


@pytest.mark.parametrize("idle_s", [0.0, 0.0001, 30.0])
def test_every_piece_of_work_is_done_once(idle_s: float) -> None:
    threads, done, count = ToolThreads(idle_s), Counter[int](), 3000
    all_done = threading.Semaphore(0)

    def work(number: int) -> None:
        done[number] += 1
        all_done.release()

    for number in range(count):
        threads.start(partial(work, number))
    for _ in range(count):
        assert all_done.acquire(timeout=30)
    assert done == Counter(range(count))


HANGING: Final = """
import asyncio, threading
from runlane.worker.tools.threads import run_in_thread

async def main():
    started = threading.Event()
    asyncio.create_task(run_in_thread(lambda: (started.set(), threading.Event().wait())))
    while not started.is_set():
        await asyncio.sleep(0)
    print("over")
    raise SystemExit(3)

loop = asyncio.new_event_loop()
loop.run_until_complete(main())
"""


def test_the_process_ends_in_spite_of_a_function_that_never_returns() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (3, "over\n"), ended.stderr
