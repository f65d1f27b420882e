"""An event loop in a thread of its own, for code that has none."""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from runlane.journal.errors import RunlaneError

P = ParamSpec("P")
T = TypeVar("T")

_Started = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class BackgroundLoop:
    """Runs coroutines for any number of threads, which wait for them."""

    def __init__(self) -> None:
        started: Future[_Started] = Future()
        self._lock = threading.Lock()
        self._closed = False
        self._closing: set[asyncio.Task[None]] = set()
        self._pid = os.getpid()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(_serve(started)), name="runlane-sync", daemon=True
        )
        self._thread.start()
        self._loop, self._stop = started.result()

    def call(
        self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a coroutine function in the loop and return what it returns.

        Raises:
            RunlaneError: The loop was closed, or was made before this process was forked.
        """
        self._check_process()
        with self._lock:
            if self._closed:
                raise RunlaneError("this client is closed")
            future = asyncio.run_coroutine_threadsafe(function(*args, **kwargs), self._loop)
        try:
            return future.result()
        except CancelledError as error:
            raise RunlaneError("this client was closed meanwhile") from error
        except BaseException:
            future.cancel()  # if it is the waiting thread that was interrupted
            raise

    def iterate(self, source: AsyncGenerator[T, None]) -> Iterator[T]:
        """Yield what an asynchronous generator yields, and close it in the end.

        Raises:
            RunlaneError: The loop was closed, or was made before this process was forked.
        """
        while found := self.call(_next, source):
            try:
                yield found[0]
            except BaseException:
                self._abandon(source)
                raise

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `last`, cancel what still runs, and end the thread; doing so again does nothing.

        Raises:
            RunlaneError: The loop was made before this process was forked.
        """
        self._check_process()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            future = asyncio.run_coroutine_threadsafe(last(), self._loop)
        try:
            future.result()
        finally:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def _abandon(self, source: AsyncGenerator[Any, None]) -> None:
        """Have a generator closed, without waiting: the interpreter may be about to exit."""
        if os.getpid() == self._pid:
            with suppress(RuntimeError):  # the loop is closed, and the generator with it
                self._loop.call_soon_threadsafe(self._close_soon, source)

    def _close_soon(self, source: AsyncGenerator[Any, None]) -> None:
        task = self._loop.create_task(_close(source))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise RunlaneError("this client was made before the process was forked: make another")


async def _serve(started: "Future[_Started]") -> None:
    stop = asyncio.Event()
    started.set_result((asyncio.get_running_loop(), stop))
    await stop.wait()


async def _close(source: AsyncGenerator[Any, None]) -> None:
    await source.aclose()


async def _next(source: AsyncGenerator[T, None]) -> tuple[T] | None:
    try:
        return (await anext(source),)
    except StopAsyncIteration:
        return None
