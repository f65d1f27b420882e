"""`runlane worker` and `runlane dev`: processes that execute runs."""

import asyncio
import gc
import os
import threading
from contextlib import ExitStack
from pathlib import Path

import click
import structlog
import uvloop
from msgspec.structs import replace

from runlane.journal.server import launch
from runlane.journal.settings import Settings, load_settings
from runlane.observability.logs import configure_logs
from runlane.producer.commands.own_name import own_name
from runlane.worker.app import App, load_app
from runlane.worker.models import ModelConfig
from runlane.worker.runner.worker import RunlaneWorker
from runlane.worker.testing.process import scripted_model

logger = structlog.get_logger(__name__)

_LAST_THREAD_S = 1.0

_SLOTS = click.option("--max-runs", type=int, help="Runs executed at once.")
_LEASE = click.option("--lease-ms", type=int, help="How long a silent worker keeps its runs.")


def serve(app: App, url: str, settings: Settings) -> None:
    """Execute runs in this process until it is told to stop."""
    gc.collect()
    gc.freeze()  # what was imported stays: the collector need not look at it again
    gc.set_threshold(20_000, 20, 20)
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        RunlaneWorker(app, url, settings).run()
    finally:
        loop.close()


def leave() -> None:
    """End the process although a synchronous tool may never return from its thread."""
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join(_LAST_THREAD_S)
            if thread.is_alive():
                logger.warning("thread_abandoned", thread=thread.name)
                os._exit(0)


@click.command(
    epilog="""\b
Examples:
  runlane worker myapp.agents:app
  RUNLANE_REDIS_URL=redis://10.0.0.5 runlane worker myapp.agents:app --max-runs 300
"""
)
@click.argument("app")
@_SLOTS
@_LEASE
def worker(app: str, max_runs: int | None, lease_ms: int | None) -> None:
    """Execute the runs of APP, given as package.module:attribute.

    SIGTERM drains: each run goes on to its next turn boundary and is handed to another worker.
    A second SIGTERM stops at once.
    """
    settings = load_settings(max_runs=max_runs, lease_ms=lease_ms)
    configure_logs(level=settings.log_level, json=settings.log_json)
    if settings.redis_url is None:
        raise click.UsageError(
            "RUNLANE_REDIS_URL is not set. Set it, or use 'runlane dev APP', which starts a "
            "Redis server of its own"
        )
    serve(load_app(app), settings.redis_url, settings)
    leave()


@click.command(
    epilog="""\b
Examples:
  runlane dev myapp.agents:app
  runlane dev examples.support:app
"""
)
@click.argument("app")
@_SLOTS
@_LEASE
@click.option("--port", type=int, default=6399, show_default=True, help="Port of the server.")
def dev(app: str, max_runs: int | None, lease_ms: int | None, port: int) -> None:
    """Execute the runs of APP here, on a Redis server of our own if none is configured.

    Without MODEL_URL, MODEL_API_KEY and CHAT_MODEL, a scripted model answers.
    """
    settings = load_settings(max_runs=max_runs, lease_ms=lease_ms)
    configure_logs(level=settings.log_level, json=settings.log_json)
    with ExitStack() as stack:
        if not ModelConfig.present():
            os.environ.update(stack.enter_context(scripted_model()))
            click.echo("no MODEL_URL is set: a scripted model answers (see examples/README.md)")
        loaded = load_app(app)
        url = settings.redis_url
        if url is None:
            server = stack.enter_context(launch(settings.data_dir, port=port))
            url = server.url
            if settings.archive is None:
                folder = Path(settings.data_dir, "archive").absolute()
                settings = replace(settings, archive=str(folder))
            click.echo(f"{server.version} on {url}, data in {settings.data_dir}/")
            click.echo(f"in another terminal:\n  export RUNLANE_REDIS_URL={url}")
            click.echo(f"  export RUNLANE_ARCHIVE={settings.archive}")
        click.echo(f"  {own_name()} run my-session 'Hello' --agent {next(iter(loaded.agents))}")
        serve(loaded, url, settings)
    leave()
