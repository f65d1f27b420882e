"""One performance: workers up, sessions asking, faults, journals read, verdict."""

import asyncio
import time
from typing import Final

from rich.console import Console

from runlane.producer.client import Client
from runlane.worker.demo.faults import Faults
from runlane.worker.demo.fleet import Fleet, WorkerState
from runlane.worker.demo.observed import Observed, SessionTrace
from runlane.worker.demo.scenario import RUNS_PER_SESSION, Conversation, session_ids
from runlane.worker.demo.stage import LEASE_MS, Stage
from runlane.worker.demo.tasks import Tasks
from runlane.worker.demo.verdict import Line, judge
from runlane.worker.demo.view import View, view_on

WORKER_COUNT: Final = 3
RUNS_TIMEOUT_S: Final = 45.0
REAL_MODEL_TIMEOUT_S: Final = 600.0
_REFRESH_S: Final = 0.125


async def perform(stage: Stage, fleet: Fleet, console: Console) -> list[Line]:
    """Return what held of what was promised.

    Raises:
        DemoError: A worker did not start.
        ServerUnavailableError: The Redis server is away.
    """
    traces = [SessionTrace(session_id) for session_id in session_ids()]
    observed = Observed(scripted=stage.scripted, sessions=traces)
    with view_on(console, observed, fleet.workers) as view:
        drawing = asyncio.create_task(_draw(view))
        view.say(f"server: {stage.server}")
        view.say(f"model: {stage.model}")
        async with await Client.connect(settings=stage.settings) as client:
            await _start_workers(fleet, view)
            await _run_all(stage, fleet, client, observed, view)
        drawing.cancel()
    observed.ledger = stage.ledger.read()
    observed.died = [each.name for each in fleet.workers if each.state is WorkerState.DIED]
    return judge(observed, lease_s=LEASE_MS / 1000, runs_per_session=RUNS_PER_SESSION)


async def _start_workers(fleet: Fleet, view: View) -> None:
    began_at = time.monotonic()
    await asyncio.gather(*(fleet.start().ready() for _ in range(WORKER_COUNT)))
    seconds = time.monotonic() - began_at
    view.say(f"{WORKER_COUNT} workers serve, started in {seconds:.1f} s")


async def _run_all(
    stage: Stage, fleet: Fleet, client: Client, observed: Observed, view: View
) -> None:
    conversations = [
        Conversation(client, trace, Tasks(number, scripted=stage.scripted))
        for number, trace in enumerate(observed.sessions, 1)
    ]
    faults = Faults(fleet, client, stage.ledger, observed, view)
    limit = RUNS_TIMEOUT_S if stage.scripted else REAL_MODEL_TIMEOUT_S
    view.say(f"{len(conversations)} sessions ask for a run, a follow-up and a continue each")
    try:
        async with asyncio.timeout(limit):
            await asyncio.gather(faults.inject(), *(each.play() for each in conversations))
    except TimeoutError:
        view.say(f"not done within {limit:g} s")
    view.say(f"{view.progress}; reading the journals")
    await asyncio.gather(*(each.read_journal() for each in conversations))


async def _draw(view: View) -> None:
    while True:
        view.refresh()
        await asyncio.sleep(_REFRESH_S)
