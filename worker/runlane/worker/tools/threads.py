"""Threads for functions that block: as many as are running, used again when they are free."""

import asyncio
import concurrent.futures
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from runlane.worker.tools.texts import describe

T = TypeVar("T")
Work = Callable[[], None]
Inbox = queue.SimpleQueue[Work]

IDLE_S: Final = 30.0
"""Seconds that a free thread waits for more work, before it ends."""


class ToolThreads:
    """Starts a thread for whatever no free one can take.

    Nothing stops a function that blocks for ever: it costs a thread, and no other call has to wait
    for one. asyncio's own threads are a few for all code of a process, for ever lost one by one.
    They are daemons, so that the process can end in spite of them.
    """

    def __init__(self, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._free: list[Inbox] = []

    def start(self, work: Work) -> None:
        """Run `work` in a thread, now.

        Args:
            work: Raises nothing.

        Raises:
            RuntimeError: The system gives no more threads; it will not run.
        """
        try:
            inbox = self._free.pop()
        except IndexError:
            inbox = Inbox()
            threading.Thread(
                target=self._serve, args=(inbox,), name="runlane-tool", daemon=True
            ).start()
        inbox.put(work)

    def _serve(self, inbox: Inbox) -> None:
        work = inbox.get()
        while True:
            work()
            self._free.append(inbox)
            try:
                work = inbox.get(timeout=self._idle_s)
            except queue.Empty:
                try:
                    self._free.remove(inbox)
                except ValueError:  # somebody has just taken it
                    work = inbox.get()
                else:
                    return


_threads: Final = ToolThreads()


async def run_in_thread(function: Callable[[], T]) -> T:
    """Return what a function gives that blocks; a cancelled caller still waits for it.

    Raises:
        RuntimeError: It raised a `StopIteration`, which no coroutine can; or there is no thread.
        BaseException: Whatever else it raises.
    """
    result: concurrent.futures.Future[T] = concurrent.futures.Future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result.set_result(context.run(function))
        except StopIteration as error:
            result.set_exception(RuntimeError(f"the tool raised {describe(error, typed=True)}"))
        except BaseException as error:
            result.set_exception(error)

    _threads.start(work)
    done: asyncio.Future[T] = asyncio.wrap_future(result)
    try:
        await asyncio.wait({done})  # unlike `await done`, it leaves the work alone when cancelled
    except asyncio.CancelledError:
        await asyncio.wait({done})
    return done.result()
