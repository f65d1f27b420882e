"""All that an example needs, in one process: a model, a server, a worker and a client."""

import asyncio
import atexit
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from signal import Signals
from tempfile import TemporaryDirectory
from typing import Any

from runlane.journal.partition import Partition
from runlane.journal.server import launch
from runlane.journal.settings import load_settings
from runlane.observability.logs import configure_logs
from runlane.producer import Client
from runlane.worker import App, ModelConfig, OpenAIModelAdapter, RunlaneWorker
from runlane.worker.testing.process import scripted_model

_until_exit = ExitStack()
atexit.register(_until_exit.close)


def model() -> OpenAIModelAdapter:
    """Return the model that the environment names, or else the scripted one."""
    if not ModelConfig.present():
        os.environ.update(_until_exit.enter_context(scripted_model()))
    return OpenAIModelAdapter(ModelConfig.from_env())


@contextmanager
def server() -> Generator[None]:
    """Start a server for the block, unless RUNLANE_REDIS_URL names one."""
    with ExitStack() as stack:
        if load_settings().redis_url is None:
            folder = stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
            os.environ["RUNLANE_REDIS_URL"] = stack.enter_context(launch(folder)).url
            stack.callback(os.environ.pop, "RUNLANE_REDIS_URL")
        yield


@asynccontextmanager
async def serving(app: App) -> AsyncGenerator[Client]:
    """Serve an app until the end of the block, as `runlane dev` does; yield a client."""
    with server():
        settings = load_settings()
        assert settings.redis_url is not None
        worker = RunlaneWorker(app, settings.redis_url, settings, handle_signals=False)
        task = asyncio.create_task(worker.main())
        try:
            await _registered(task, Partition.of(settings.redis_url, settings))
            async with await Client.connect() as client:
                yield client
                worker.handle_sig(Signals.SIGTERM)  # what it is at goes on elsewhere
            await task
        finally:
            task.cancel()
            await asyncio.wait([task])
            await worker.close()


async def _registered(worker: "asyncio.Task[None]", partition: Partition) -> None:
    serves = ("ZCARD", partition.keys.workers())
    while not (worker.done() or await partition.call(*serves)):  # noqa: ASYNC110 (the server says it)
        await asyncio.sleep(0.02)
    await partition.close()


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run an example; of the worker's logs only warnings are shown."""
    configure_logs(level="warning", json=False)
    asyncio.run(main())
